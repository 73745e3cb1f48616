"""Contracts of replay schemes and of their policies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES
from buddysim.contracts.contract import Contract
from buddysim.contracts.replayed import SCHEME, ReplayedSubject
from buddysim.contracts.trials import fetched_ahead
from buddysim.replay.primitives.kinds import Placement
from buddysim.replay.schemes.buddy.numbers import metadata_numbers

_LATENCIES = "latency.l2_miss_histogram"
_ENTRIES = 2**16
_LOOKUPS = 300
_LARGEST_PAUSE_PS = 3000


def _wrong_lines(subject: ReplayedSubject) -> Iterator[str]:
    """Lookups of random entries, and of the last one: lines after its line are of no entry."""
    draw = np.random.default_rng(1)
    entries = [_ENTRIES - 1, *draw.integers(0, _ENTRIES, _LOOKUPS).tolist()]
    times = np.cumsum(draw.integers(0, _LARGEST_PAUSE_PS, len(entries))).tolist()
    numbers = metadata_numbers(subject.machine)
    entries_per_line = 32 << int(numbers["metadata_line_sectors"]).bit_length()
    allocations = np.array([[0, _ENTRIES, Placement.DEVICE, 4]], dtype=np.int64)
    lookups = list(zip(entries, times, strict=True))
    classes, policies = np.zeros(_ENTRIES, np.uint8), subject.machine.policies()
    before: set[tuple[int, int]] = set()
    after = fetched_ahead(subject.numbers, policies, numbers, allocations, classes, lookups)
    for number, ((entry, now), (present, earliest, counted)) in enumerate(zip(lookups, after, strict=True), 1):
        lookup = f"lookup {number}, of entry {entry} at {now} ps"
        if counted != number:
            yield f"{lookup}: {counted} are counted"
        for line, arrival in sorted(set(present) - before):
            if line * entries_per_line >= _ENTRIES:
                yield f"{lookup}: line {line} is fetched, which is of no entry"
            if arrival < earliest:
                yield f"{lookup}: line {line} arrives at {arrival} ps, from idle memory at {earliest} ps"
        lines = [line for line, _ in present]
        if len(set(lines)) < len(lines):
            yield f"{lookup}: a line is present twice"
        before = set(present)


def _miscounted(subject: ReplayedSubject) -> Iterator[str]:
    """The engine has a latency for each fill; write-backs have 1 to 4 sectors. Schemes count both themselves."""
    for trace, result in zip(subject.traces, subject.results, strict=True):
        fills, writebacks, sectors = result["l2.fills"], result["l2.writebacks"], result["l2.writeback_sectors"]
        n_fills = sum(result[_LATENCIES])
        if fills != n_fills:
            yield f"{trace.stem}: it counts {fills} fills of {n_fills}"
        if not sectors * SECTOR_BYTES / ENTRY_BYTES <= writebacks <= sectors:
            yield f"{trace.stem}: it counts {writebacks} write-backs of {sectors} sectors"


def _timeless(subject: ReplayedSubject) -> Iterator[str]:
    for trace, result in zip(subject.traces, subject.results, strict=True):
        latencies = result[_LATENCIES]
        if latencies[0] or latencies[-1]:
            yield f"{trace.stem}: {latencies[0]} fills take no time, {latencies[-1]} a negative or endless one"


CONTRACTS: dict[str, tuple[Contract, ...]] = {
    # A run refuses counters that are declared and not counted.
    SCHEME: (
        Contract("it counts each fill and each write-back", _miscounted),
        Contract("a fill takes time", _timeless),
    ),
    "metadata prefetcher": (
        Contract(
            "it fetches lines of entries, each once, after the miss, and counts no lookup", _wrong_lines, safe=True
        ),
    ),
}
