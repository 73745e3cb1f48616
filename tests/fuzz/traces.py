"""Complete trace files from a grammar: huge sizes, overlapping lifetimes, kernels that access few bytes.

They are written by the package's writer, so that every checksum and reference is right; then, in half of the cases,
sections are changed and checksums recomputed (`tests.trace.damage`).
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.trace.writer import Records
from tests.trace import damage
from tests.trace.builders import line, records

_SIZES = (
    1,
    32,
    127,
    128,
    129,
    4096,
    8192,
    8193,
    1 << 20,
    (1 << 21) + 128,
    1 << 28,
    1 << 33,
    1 << 39,
    511 << 30,
    1 << 44,
)
_BASES = (0, 128, (1 << 21) - 128, 1 << 21, 1 << 33, 1 << 40, (1 << 47) - 128, 1 << 56)
_COUNTS = (0, 1, 2, 3, 5)
_LARGEST_KNOWN = 1 << 21  # bytes of an allocation whose values are written whole


@st.composite
def grammar_traces(draw: st.DrawFn, folder: Path) -> bytes:
    """Generate a trace file."""
    seed = draw(st.integers(0, 2**32 - 1))
    steps = draw(
        st.lists(st.sampled_from(("allocate", "free", "copy", "fill", "kernel", "kernel", "snapshot")), max_size=12)
    )
    path = folder / "grammar.bin"
    rng = random.Random(seed)
    with bt.TraceWriter(path, bt.Provenance("fuzz", assumptions={"gaps": "none: \x1b[31m"})) as writer:
        maker = _Maker(writer, rng)
        for step in ["allocate", *steps]:
            getattr(maker, step)()
    data = path.read_bytes()
    path.unlink()
    if draw(st.booleans()):
        return data
    return next(iter(damaged(data, rng)))


def damaged(data: bytes, rng: random.Random) -> list[bytes]:
    """Return changed versions with valid checksums; without chunks, one with another section changed."""
    sections = damage.split(data)
    if not any(kind == b"CHNK" for kind, _ in sections):
        at = rng.randrange(len(sections) - 1)
        sections[at] = (sections[at][0], damage.scribble(rng, sections[at][1]))
        return [damage.join(data[: damage.HEAD], sections[:-1])]
    return list(damage.damaged_files(data, rng.randrange(2**32), 1))


class _Maker:
    """Writes steps of a random program, some of which the writer refuses."""

    def __init__(self, writer: bt.TraceWriter, rng: random.Random) -> None:
        self.writer, self.rng = writer, rng
        self.live: dict[int, tuple[int, int]] = {}
        self.launches = 0

    def allocate(self) -> None:
        base, size = self.rng.choice(_BASES) + 128 * self.rng.choice(_COUNTS), self.rng.choice(_SIZES)
        name = self.rng.choice(("a", "", "\x1b[2J", "\u202ename", "x" * 3000))
        try:
            number = self.writer.add_allocation(name, base, size, self.rng.choice(("device", "device", "host")))
        except (BuddysimError, ValueError):
            return
        self.live[number] = (base, size)

    def free(self) -> None:
        if self.live:
            number = self.rng.choice(sorted(self.live))
            self.writer.free_allocation(number)
            del self.live[number]

    def copy(self) -> None:
        if self.live:
            base, size = self.rng.choice(sorted(self.live.values()))
            start = self.rng.randrange(size)
            self.writer.memcpy(self.rng.choice(("htod", "dtoh")), base + start, self.rng.choice((size - start, 1, 0)))

    def fill(self) -> None:
        if self.live:
            base, size = self.rng.choice(sorted(self.live.values()))
            self.writer.memset(base, size, self.rng.choice((None, 0, 255)))

    def kernel(self) -> None:
        threads = self.rng.choice((1, 32, 33, 1024))
        n_blocks = self.rng.choice((1, 1, 3, 40))
        name = self.rng.choice(("k", "", "\x1b]0;title\x07", "\u202e"))
        self.writer.begin_kernel(
            name, (n_blocks, 1, 1), (threads, 1, 1), stream=self.rng.choice((0, 1, 2)), launch_index=self.launches
        )
        self.launches += self.rng.choice((1, 1, 5))
        if self.live:
            self.writer.add_blocks(*self._blocks(n_blocks, -(-threads // 32)))
        self.writer.end_kernel()

    def _blocks(self, n_blocks: int, warps: int) -> Records:
        def op() -> tuple[dict[str, int], list[int]]:
            base, size = self.rng.choice(sorted(self.live.values()))
            addresses = {
                base + 128 * self.rng.randrange(-(-size // 128)) for _ in range(self.rng.choice((1, 1, 2, 32)))
            }
            lines = [line(address, 1) for address in sorted(addresses)]
            gap = self.rng.choice((0, 1, 100, 2**16 - 1))
            slots = self.rng.choice((0, 0, 3, 2**16 - 1))
            kind = self.rng.choice((0, 1, 2))
            return {"kind": kind, "gap_instructions": gap, "unit_busy_slots": slots, "bytes_per_lane": 4}, lines

        def warp(number: int) -> tuple[dict[str, int], list[tuple[dict[str, int], list[int]]]]:
            tail = {
                "tail_gap_instructions": self.rng.choice((0, 0, 1, 2**16)),
                "tail_critical_path_cycles": self.rng.choice((0, 1, 2**32 - 1)),
                "tail_unit_busy_slots": self.rng.choice((0, 0, 5, 2**16 - 1, 2**32 - 1)),
            }
            return {"warp": number, **tail}, [op() for _ in range(self.rng.choice(_COUNTS))]

        return records([(block, [warp(number) for number in range(warps)]) for block in range(n_blocks)])

    def snapshot(self) -> None:
        snapshot = self.writer.add_snapshot(self.launches, self.rng.choice(("", "replay: x", "\x1b[31m")))
        for number, (_, size) in sorted(self.live.items()):
            what = self.rng.choice(("size map", "all", "pages", "nothing"))
            entries = -(-size // 128)
            if what == "size map" and size <= _LARGEST_KNOWN:
                classes = np.array([self.rng.choice((0, 3, 7, 15)) for _ in range(16)], np.uint8)
                self.writer.add_size_map(snapshot, number, np.resize(classes, entries))
            elif what == "all" and size <= _LARGEST_KNOWN:
                self.writer.add_contents(snapshot, number, np.zeros(size, np.uint8))
            elif what == "pages" and size >= 1 << 13:
                pages = sorted({self.rng.randrange(min(size >> 13, 2**32 - 1)) for _ in range(3)})
                self.writer.add_contents(snapshot, number, bytes(8192 * len(pages)), np.array(pages, np.uint32))
