"""Laws of physics and of bookkeeping, checked on a random machine and trace made from a seed.

1. *Better*: a better resource (bandwidth, latency, MSHRs, ways, channels, link) slows no run by more than 0.1 %.
   Queueing is sometimes truly non-monotonic: `non_monotonic.toml` lists the resources for which that happens, with
   the smallest example, the largest slowdown and the cause. An experiment finds the cause (`cause_of`), and
   `examples.json` has cases of a few instructions for each, explained by hand.
2. *Incompressible*: data that do not compress move the same bytes in the same time under every scheme that keeps them
   in device memory.
3. *Conserved*: what a level of memory receives, it passes on or keeps.
4. *Bound*: no run is faster than any of its resources allows.
5. *In flight*: requests are no more than what holds them, by Little's law: their number times the least time that each
   is held is at most the run's time times the slots. What is in flight at the end does not count.
6. *Fitting*: `buddy` without overflow and with free metadata is `bandwidth-compression`.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.compress import SECTOR_BYTES
from buddysim.machine import Machine
from buddysim.trace import open_trace
from tests.laws.exact_ports import exact_ports
from tests.laws.orders import slowdowns_in_order
from tests.replay.random_cases import Case, Launch, random_case, write_case

Counters = dict[str, Any]
Simulate = Callable[[str, dict[str, Any]], Counters]

SCHEMES = ("ideal", "bandwidth-compression", "buddy", "pinned-host", "unified-memory")
FIRST_SEED = 10_000  # of `random_case`; others are those of `test_reference_machine.py`
TOLERANCE = 0.001
BUCKET_PS = 1 << 16  # of a port, which grants requests from the bucket's start on
LARGEST = 7  # size class of data that do not compress
#: Largest size class that fits each target.
FITS = {"1x": 7, "1.33x": 6, "2x": 4, "4x": 3, "16x": 0}

#: Better values of resources: factors of the value.
BETTER = {
    "crossbar.request_bandwidth": 2,
    "crossbar.reply_bandwidth": 2,
    "l2.bandwidth": 2,
    "dram.pseudo_channel_bandwidth": 2,
    "link.bandwidth": 2,
    "l1.load_to_use": 0.5,
    "l2.load_to_use": 0.9,
    "dram.load_to_use": 0.9,
    "link.load_to_use": 0.9,
    "metadata_cache.hit_latency": 0.5,
    "metadata_cache.lookup_interval": 0.5,
    "compression.latency": 0.5,
    "compression.initiation_interval": 0.5,
    "l2.atomic_interval": 0.5,
    "l1.mshrs": 2,
    "l2.mshrs": 2,
    "l1.ways": 2,
    "l2.ways": 2,
    "metadata_cache.ways": 2,
    "dram.channels": 2,
    "um.fault_batch_latency": 0.5,
}
#: What else changes with a resource, by the same factor: sets and slices stay as large, memory stays as far behind L2.
WITH = {
    "l1.ways": ("l1.size",),
    "l2.ways": ("l2.size",),  # not `l2.max_dirty`: stores to dirty sectors take longer
    "metadata_cache.ways": ("metadata_cache.size",),
    "dram.channels": ("l2.slices", "l2.size", "l2.max_dirty"),
}
#: What the causes of a violation mean, in the order in which `cause_of` looks for them.
CAUSES = {
    "address_map": "Twice the channels are another address map: other lines share a set, a row or a partition.",
    "scheduler": "Gone if each scheduler issues its warps in the order of the other run: of two warps, the one that is "
    "ready first issues first, and the other one ends last (Graham 1969).",
    "issue_order": "Gone if instructions of all schedulers issue in the order of the other run: ports, MSHRs, ways and "
    "rows are taken in the order of issue.",
    "pages": "Gone if all pages fit: a page is evicted, or a fault batch starts, before an access instead of after it.",
    "rewrites": "Gone without l2.dirty_store_interval: a line that stays in the L2 stays dirty, and stores to dirty "
    "sectors take longer.",
    "buckets": "Gone with ports that know each request's begin and end: buckets of 65 ns have no order within.",
    "slots": "Gone without input queues: a slot of another length begins at another time.",
    "mshrs": "Gone with 1,024 MSHRs: they are taken in a ring, so a request waits for one that is held longer.",
    "caches": "Gone without evictions and metadata: a larger cache hides uses from the LRU of the next one, or what "
    "knows its size earlier takes a port before a request on the critical path.",
    "rows": "Gone with simple device memory: rows, refreshes, drains and slots of the bus are met at other times.",
    "others": "With none of these off alone.",
}
#: Machine keys that switch a mechanism off. From the third cause on, runs are in the order of issue of the case's run.
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "pages": {"um.capacity": "1 GiB", "um.initial_location": "device"},
    "rewrites": {"l2.dirty_store_interval": "0 ns"},
    "buckets": {},
    "slots": {"crossbar.input_queued": False, "crossbar.interleave_requesters": False},
    "mshrs": {"l1.mshrs": 1024, "l2.mshrs": 1024},
    "caches": {"l1.ways": 64, "l2.ways": 64, "l2.max_dirty": "0 B", "metadata_cache.perfect": True},
    "rows": {"dram.model": "simple"},
}
#: Bandwidths of which the first transfer is a part of the latency.
FIRST_TRANSFER: dict[str, Callable[[Machine], Any]] = {
    "dram.pseudo_channel_bandwidth": lambda machine: machine.dram.pseudo_channel_bandwidth,
    "link.bandwidth": lambda machine: machine.link.bandwidth,
}
#: Machine keys with which data that do not compress cost no more than without compression.
INCOMPRESSIBLE = {
    "buddy.bypass_1x": False,
    "metadata_cache.perfect": True,
    "compression.fetch_whole_raw_entry": False,
    "um.initial_location": "device",
    "um.capacity": "1 GiB",
}
#: Machine keys with which few slots hold requests for long: without their limit, a random run is too fast.
FAR = {
    "dram.load_to_use": "20 us",
    "link.load_to_use": "50 us",
    "l2.mshrs": 2,
    "l2.writeback_buffer": 1,
}
#: Counters of hits, merges, traffic and faults.
TRAFFIC = (
    "l1.sector_hits",
    "l1.sector_mshr_merges",
    "l2.sector_hits",
    "l2.sector_mshr_merges",
    "l2.fills",
    "l2.writebacks",
    "l2.writeback_sectors",
    "metadata.hits",
    "metadata.mshr_merges",
    "device.row_misses",
    "device.bus_bytes",
    "device.queued_write_bytes",
    "um.page_faults",
)


@dataclass(frozen=True)
class Violation:
    """A law that a seed's case breaks.

    Attributes
    ----------
    law : its name
    about : the resource, scheme or counter
    slowdown : of *Better*, less 1
    instructions : memory instructions of the case
    cause : of *Better*, one of `CAUSES`
    """

    law: str
    seed: int
    about: str
    slowdown: float = 0.0
    instructions: int = 0
    cause: str = ""


@dataclass(frozen=True)
class Example:
    """A case of a few instructions that a better resource slows.

    Attributes
    ----------
    slowdown : less 1
    why : what happens, followed by hand
    """

    case: Case
    resource: str
    cause: str
    slowdown: float
    why: str

    def better(self, machine: Machine) -> Machine:
        """Return the machine with the better resource."""
        return better_machine(machine, self.resource)


def examples() -> list[Example]:
    """The cases of `examples.json`; their machines are `p100-nvlink2` but for the keys given."""
    return [_example(one) for one in json.loads((Path(__file__).parent / "examples.json").read_text())]


def _example(data: dict[str, Any]) -> Example:
    allocations = [(str(name), int(base), int(size), str(space)) for name, base, size, space in data["allocations"]]
    events = [(word, Launch(**rest[0])) if word == "kernel" else (word, *rest) for word, *rest in data["events"]]
    for word, *rest in events:
        if word == "snapshot":
            rest[1].update({int(index): sizes for index, sizes in dict(rest[1]).items()})
    targets = {int(index): target for index, target in data["targets"].items()}
    case = Case(0, data["scheme"], data["machine"], allocations, events, targets, data["options"])
    return Example(case, data["resource"], data["cause"], data["slowdown"], data["why"])


def better_machine(machine: Machine, key: str) -> Machine:
    """The machine with a better value of a resource.

    A lower latency of the L2 is one of everything behind it, too. A memory or link with a higher bandwidth has a
    latency that is lower by what its first transfer takes less: the rest of the way stays as long.
    """
    factor = BETTER[key]
    changed = {key: _scaled(machine, key, factor)}
    changed |= {other: _scaled(machine, other, factor) for other in WITH.get(key, ())}
    if key in FIRST_TRANSFER:
        memory = key.split(".", maxsplit=1)[0]
        size = SECTOR_BYTES + (machine.link.header_size if memory == "link" else 0)
        saved = size * 1e12 / machine.bytes_per_s(FIRST_TRANSFER[key](machine)) / 2
        changed[f"{memory}.load_to_use"] = f"{machine.ps(getattr(machine, memory).load_to_use) - round(saved)} ps"
    if key == "l2.load_to_use":
        saved_ps = machine.ps(machine.l2.load_to_use) // 10
        for memory in ("dram", "link"):
            changed[f"{memory}.load_to_use"] = f"{machine.ps(getattr(machine, memory).load_to_use) - saved_ps} ps"
        changed[key] = f"{machine.ps(machine.l2.load_to_use) - saved_ps} ps"
    return machine.with_overrides(changed)


def _scaled(machine: Machine, key: str, factor: float) -> object:
    value = machine.value(key)
    if key.endswith(("size", "max_dirty")):
        return f"{int(value * factor)} B"
    if isinstance(value, int):
        return int(value * factor)
    match = re.match(r"([\d.]+) ?(.*)", str(value))
    assert match is not None
    return f"{float(match[1]) * factor:.9g} {match[2]}"


def law_case(seed: int, schemes: Sequence[str] = SCHEMES, *, larger: bool = False) -> tuple[Case, random.Random]:
    """The case of a seed, without kernels that hold a unit for tens of us after their last instruction.

    tCCD_L is a whole number of bursts, to which the engine rounds it, so that it is as long with bursts half as long.
    """
    draw = random.Random(seed)
    case = random_case(FIRST_SEED + seed, draw.choice(schemes), draw.choice(["simple", "banked"]), larger=larger)
    case.options.pop("kernels", None)
    for word, *rest in case.events:
        for _, warps in rest[0].blocks if word == "kernel" else ():
            for fields, _ in warps:
                fields["tail_unit_busy_slots"] = min(fields.get("tail_unit_busy_slots", 0), 19)
    machine = case.make_machine()
    burst_ps = 32e12 / machine.bytes_per_s(machine.dram.pseudo_channel_bandwidth)
    bursts = max(1, round(machine.ps(machine.dram.timing.tCCD_L) / burst_ps))
    case.machine["dram.timing.tCCD_L"] = f"{bursts * burst_ps:.0f} ps"
    return case, draw


def violations(seed: int) -> Iterator[Violation]:
    """Laws that a seed's case breaks; none if the engine refuses its machine."""
    case, draw = law_case(seed)
    keys = draw.sample(list(BETTER), 2)
    with tempfile.TemporaryDirectory() as folder:
        with _replaying(case, Path(folder) / "case.bin") as run:
            try:
                count = run(case.scheme, {})
            except BuddysimError:
                return
            yield from _conserved(seed, count)
            yield from _bound(seed, case, count)
            far = replace(case, machine=case.machine | FAR)
            yield from _in_flight(seed, far, run(case.scheme, FAR))
            yield from _better(seed, case, run, count, keys)
        with _replaying(_with_classes(case, {}), Path(folder) / "raw.bin") as run:
            yield from _incompressible(seed, run)
        with _replaying(_with_classes(case, FITS), Path(folder) / "fitting.bin") as run:
            yield from _fitting(seed, run)


class _replaying:
    """Opens a case's trace; `with` gives a function of scheme and machine keys that replays it."""

    def __init__(self, case: Case, path: Path) -> None:
        self.case, self.trace = case, open_trace(write_case(case, path))

    def __enter__(self) -> Simulate:
        trace = self.trace.__enter__()
        targets, machine = self.case.make_targets(trace), self.case.make_machine()

        @cache
        def changed_machine(changed: tuple[tuple[str, Any], ...]) -> Machine:
            key = dict(changed).get("better")
            return better_machine(machine, key) if key else machine.with_overrides(dict(changed))

        def run(scheme: str, changed: dict[str, Any]) -> Counters:
            used = changed_machine(tuple(changed.items())) if changed else machine
            result = buddysim.simulate(trace, used, scheme, targets, **self.case.options)
            return {**result.counters, "per_kernel": [row["time_ps"] for row in result.per_kernel]}

        return run

    def __exit__(self, *about: object) -> None:
        self.trace.__exit__(*about)  # type: ignore[arg-type]


def _with_classes(case: Case, fits: dict[str, int]) -> Case:
    """The case with a snapshot of classes that fit the targets; without `fits`, of such that do not compress."""
    classes = {}
    for index, (_, _, size, _) in enumerate(case.allocations):
        largest = fits[case.targets.get(index, "1x")] if fits else LARGEST
        draw = random.Random(index)
        classes[index] = [draw.randint(0, largest) if fits else LARGEST for _ in range(-(-size // 128))]
    events = [event for event in case.events if event[0] != "snapshot"]
    targets = case.targets if fits else {}
    return Case(
        case.seed,
        case.scheme,
        case.machine,
        case.allocations,
        [*events, ("snapshot", 0, classes)],
        targets,
        case.options,
    )


def _better(seed: int, case: Case, run: Simulate, count: Counters, keys: list[str]) -> Iterator[Violation]:
    for key in keys:
        try:
            improved = run(case.scheme, {"better": key})
        except BuddysimError:  # for instance, a latency that its parts exceed
            continue
        slowdown = improved["time_ps"] / max(1, count["time_ps"]) - 1
        if slowdown > TOLERANCE:
            yield Violation("better", seed, key, slowdown, count["memory_instructions"], cause_of(case, key))


def cause_of(case: Case, key: str) -> str:
    """Why a better resource slows a case, by experiment."""
    if key == "dram.channels":
        return "address_map"
    better = partial(better_machine, key=key)
    scheduler, all_steps = slowdowns_in_order(case, better, [False, True])
    if scheduler <= TOLERANCE:
        return "scheduler"
    if all_steps <= TOLERANCE:
        return "issue_order"
    for cause, changed in EXPERIMENTS.items():
        others = {other: value for other, value in changed.items() if other != key}
        try:
            with exact_ports() if cause == "buckets" else nullcontext():
                (slowdown,) = slowdowns_in_order(_with_keys(case, others), better, [True])
        except BuddysimError:
            continue
        if slowdown <= TOLERANCE:
            return cause
    return "others"


def _with_keys(case: Case, changed: dict[str, Any]) -> Case:
    """The case with other machine keys; caches of more ways have sets as many as before."""
    before, machine = case.make_machine(), {**case.machine, **changed}
    for key in changed:
        if key.endswith(".ways"):
            size = key.replace("ways", "size")
            machine[size] = f"{before.value(size) // before.value(key) * changed[key]} B"
    return replace(case, machine=machine)


def slowdown_of(case: Case, key: str) -> float:
    """The slowdown, less 1, by a better resource; 0 if the engine refuses a machine."""
    with tempfile.TemporaryDirectory() as folder, _replaying(case, Path(folder) / "case.bin") as run:
        try:
            times = [run(case.scheme, changed)["time_ps"] for changed in ({}, {"better": key})]
        except BuddysimError:
            return 0.0
    return float(times[1] / max(1, times[0]) - 1)


def _incompressible(seed: int, run: Simulate) -> Iterator[Violation]:
    try:
        ideal = run("ideal", INCOMPRESSIBLE)
    except BuddysimError:
        return
    for scheme in ("bandwidth-compression", "buddy", "unified-memory"):
        other = run(scheme, INCOMPRESSIBLE)
        if other["device.channel_bytes"] != ideal["device.channel_bytes"]:
            yield Violation("incompressible", seed, f"{scheme}: bytes")
        if abs(other["time_ps"] - ideal["time_ps"]) > TOLERANCE * ideal["time_ps"]:
            yield Violation("incompressible", seed, f"{scheme}: time", other["time_ps"] / ideal["time_ps"] - 1)


def _fitting(seed: int, run: Simulate) -> Iterator[Violation]:
    keys = {"buddy.bypass_1x": False, "metadata_cache.perfect": True, "buddy.eight_byte_class": True}
    try:
        one, two = run("bandwidth-compression", keys), run("buddy", keys)
    except BuddysimError:  # the buddy carve-out is too small
        return
    for name in ("time_ps", "per_kernel", "device.channel_bytes", "link.read_bytes", "link.write_bytes", *TRAFFIC):
        if one[name] != two[name]:
            yield Violation("fitting", seed, name)


def _conserved(seed: int, count: Counters) -> Iterator[Violation]:
    moved = count["device.read_bytes"] + count["device.write_bytes"] + count["device.metadata_bytes"]
    sums = {
        "load sectors": (
            count["load_sectors"],
            count["l1.sector_hits"] + count["l1.sector_mshr_merges"] + count["l2.read_sectors"],
        ),
        "L2 reads": (
            count["l2.read_sectors"],
            count["l2.read_sector_hits"] + count["l2.sector_mshr_merges"] + count["l2.read_sector_misses"],
        ),
        "stores": (count["store_sectors"], count["l2.write_sectors"]),
        "dirty sectors": (
            count["l2.sectors_made_dirty"],
            count["l2.writeback_sectors"]
            + count["l2.dirty_sectors_overwritten"]
            + count["l2.dirty_sectors_freed"]
            + count["l2.dirty_sectors_at_end"],
        ),
        "device": (count["device.bus_bytes"] + count["device.queued_write_bytes"], moved),
        "channels": (sum(count["device.channel_bytes"]), count["device.bus_bytes"]),
        "metadata": (
            count["metadata.accesses"],
            count["metadata.hits"] + count["metadata.mshr_merges"] + count["metadata.misses"],
        ),
        "kernels": (count["horizon.pushed"], 0),
    }
    for name, (one, other) in sums.items():
        if one != other:
            yield Violation("conserved", seed, f"{name}: {one}, {other}")


def _bound(seed: int, case: Case, count: Counters) -> Iterator[Violation]:
    """Of what warps wait for; what is only posted may be in flight at the end. A port may begin a bucket early."""
    machine = case.make_machine()

    def ps(size: float, bandwidth: Any) -> float:
        return size * 1e12 / machine.bytes_per_s(bandwidth)

    slot = max(ps(32, machine.l2.bandwidth), ps(32, machine.crossbar.reply_bandwidth))
    at_least = {
        "channel": ps(max(count["device.channel_demand_bytes"]), machine.dram.pseudo_channel_bandwidth),
        "link": ps(count["link.demand_bytes"], machine.link.bandwidth),
        "slices": ps(32 * count["l2.read_sectors"], machine.l2.bandwidth) / machine.l2.slices,
        "replies": ps(32 * count["l2.read_sectors"], machine.crossbar.reply_bandwidth) / machine.sm.count,
        "atomics": 0.0,
        "instructions": count["memory_instructions"]
        * machine.ps(machine.sm.issue_interval)
        / (machine.sm.count * machine.sm.schedulers * machine.sm.warps),
    }
    for name, least in at_least.items():
        if count["time_ps"] < least - BUCKET_PS - 2 * slot:
            yield Violation("bound", seed, f"{name}: {count['time_ps']} ps of {least:.0f}")


def _in_flight(seed: int, case: Case, count: Counters) -> Iterator[Violation]:
    """Requests of up to an entry each: fills in MSHRs, reads of read-modify-writes in write-back buffers."""
    machine = case.make_machine()
    l2_ps, timing = machine.ps(machine.l2.load_to_use), machine.dram.timing
    device_ps = machine.ps(machine.dram.load_to_use) - l2_ps - machine.ps(timing.tRCD) - machine.ps(timing.tRP)
    held_ps = {"link": machine.ps(machine.link.load_to_use) - l2_ps, "device": max(0, device_ps)}
    mshrs, buffers = machine.l2.slices * machine.l2.mshrs, machine.l2.slices * machine.l2.writeback_buffer
    for memory, min_held_ps in held_ps.items():
        fetched = count[f"{memory}.demand_bytes"] + count[f"{memory}.overfetch_bytes"]
        merged = count[f"{memory}.read_modify_write_bytes"]
        for name, moved, slots in (("fills", fetched, mshrs), ("read-modify-writes", merged, buffers)):
            requests = moved // 128 - slots
            if slots and requests * min_held_ps > slots * count["time_ps"]:
                yield Violation("in flight", seed, f"{memory} {name}: {requests} of {min_held_ps} ps in {slots} slots")


def non_monotonic() -> dict[str, dict[str, Any]]:
    """The resources whose improvement may slow a run, by cause."""
    return tomllib.loads((Path(__file__).parent / "non_monotonic.toml").read_text())


def unexplained(broken: list[Violation]) -> list[Violation]:
    """Violations that the list does not have, or of a larger slowdown."""
    listed = non_monotonic()

    def explained(one: Violation) -> bool:
        entry = listed.get(one.about, {}).get(one.cause)
        return one.law == "better" and entry is not None and one.slowdown <= entry["largest"]

    return [one for one in broken if not explained(one)]
