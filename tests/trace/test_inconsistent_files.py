"""Files with valid checksums and contradicting sections are refused; the error names the contradiction."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

import buddysim.trace as bt
from buddysim.base.errors import TraceFileError
from buddysim.trace import format as fmt
from tests.trace import damage
from tests.trace.builders import write_small

Change = Callable[[list[damage.Section]], None]
BASE = 1 << 33


def nth(sections: list[damage.Section], kind: bytes, n: int = 0) -> int:
    """Return the index of the n-th section of a type."""
    return [i for i, (section_kind, _) in enumerate(sections) if section_kind == kind][n]


def allocation(base: int, size: int, space: int = 0) -> Change:
    """Add an allocation after the existing ones."""

    def change(sections: list[damage.Section]) -> None:
        section = (fmt.ALLOCATE, fmt.ALLOCATE_HEAD.pack(base, size, space) + b"more")
        sections.insert(nth(sections, fmt.ALLOCATE, 2) + 1, section)

    return change


def free(index: int) -> Change:
    """Add a free after the existing one."""

    def change(sections: list[damage.Section]) -> None:
        sections.insert(nth(sections, fmt.FREE) + 1, (fmt.FREE, fmt.FREE_BODY.pack(index)))

    return change


def replaced(kind: bytes, n: int, layout: struct.Struct, **fields: int) -> Change:
    """Replace fields (`f0`, `f1`, .. by position) of the n-th section of a type."""

    def change(sections: list[damage.Section]) -> None:
        at = nth(sections, kind, n)
        payload = sections[at][1]
        values = list(layout.unpack_from(payload))
        for name, value in fields.items():
            values[int(name[1:])] = value
        sections[at] = (kind, layout.pack(*values) + payload[layout.size :])

    return change


def queued(at: int, data: bytes) -> Change:
    """Replace bytes of the first memcpy."""

    def change(sections: list[damage.Section]) -> None:
        number = nth(sections, fmt.MEMCPY, 0)
        payload = sections[number][1]
        sections[number] = (fmt.MEMCPY, payload[:at] + data + payload[at + len(data) :])

    return change


CONTRADICTIONS = {
    "overlaps": (allocation(BASE + 128, 128), "overlap allocation 0, which is live"),
    "odd base": (allocation(1 << 41 | 64, 128), "expected a base that is a multiple of 128"),
    "no bytes": (allocation(1 << 41, 0), "0 bytes at"),
    "third space": (allocation(1 << 41, 128, 2), "space 2: expected 0 or 1"),
    "freed twice": (free(1), "of allocation 1, which isn't live"),
    "unknown freed": (free(9), "of allocation 9, which isn't live"),
    "copy direction": (replaced(fmt.MEMCPY, 0, fmt.MEMCPY_BODY, f3=3), "kind 3, source given = 1"),
    "copy without source": (replaced(fmt.MEMCPY, 1, fmt.MEMCPY_BODY, f4=0), "kind 2, source given = 0"),
    "host memory": (queued(48, b"\3"), "host memory 3"),
    "latency": (queued(40, b"\xff" * 8), "latency 18446744073709551615 ps"),
    "fill beyond": (replaced(fmt.MEMSET, 0, fmt.MEMSET_BODY, f0=fmt.MAX_ADDRESS), "beyond 2^63"),
    "launch indices fall": (replaced(fmt.KERNEL, 1, fmt.KERNEL_HEAD, f0=0), "its launch index is 0, after 0"),
    "empty grid": (replaced(fmt.KERNEL, 0, fmt.KERNEL_HEAD, f3=0), "expected 1 to 2^32 blocks"),
    "huge block": (replaced(fmt.KERNEL, 0, fmt.KERNEL_HEAD, f6=1 << 20), "expected 1 to 2^16 threads"),
    "counts at the end": (replaced(fmt.KERNEL_END, 0, fmt.KERNEL_END_BODY, f0=1), "in its chunks"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_named_in_one_line(tmp_path, name: str):
    data = write_small(tmp_path / "good.bin", 4).read_bytes()
    header, sections = data[: damage.HEAD], damage.split(data)[:-1]
    path = tmp_path / "bad.bin"
    path.write_bytes(damage.join(header, sections))
    bt.open_trace(path).close()  # so it is the change that is refused
    change, problem = CONTRADICTIONS[name]
    change(sections)
    path.write_bytes(damage.join(header, sections))
    with pytest.raises(TraceFileError) as caught:
        bt.open_trace(path)
    text = str(caught.value)
    assert problem in text
    assert "\n" not in text
