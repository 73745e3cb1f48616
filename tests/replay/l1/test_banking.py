"""Contract of every L1 banking: lines enter in a possible cycle, and no run depends on another."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.replay.l1.banking import REGISTRY
from tests.replay.mechanisms.hand import NS, machine, run, store

NAMES = REGISTRY.names()
LINES = st.lists(st.tuples(st.integers(0, 255), st.integers(1, 15)), min_size=1, max_size=32)
INSTRUCTIONS = st.lists(LINES, min_size=1, max_size=4)
LATENCY = 100  # of a store: issue to acknowledgement, ns


def ended_ns(name: str, instructions: list[list[tuple[int, int]]]) -> float:
    """Return the end of a warp that issues these stores on an L1 whose port alone takes time."""
    banked = machine(
        l1__bank_conflicts=name,
        l1__mshrs=4096,
        crossbar__request_bandwidth="100000 GB/s",
        l2__bandwidth="100000 GB/s",
        l2__ways=1024,
        l2__size="128 KiB",
    )
    end_ps: int = run(banked, [store(*lines) for lines in instructions])["now_ps"]
    return round(end_ps / NS)  # sectors follow each other by 1 ps


@pytest.mark.parametrize("name", NAMES)
@given(instructions=INSTRUCTIONS)
def test_an_instruction_takes_from_one_cycle_to_one_per_line_or_sector(name, instructions):
    """All of its lines may enter in one cycle; a bank never takes longer than all lines and words one by one."""
    most = sum(max(len(lines), sum(mask.bit_count() for _, mask in lines)) for lines in instructions)
    ended = ended_ns(name, instructions)
    assert LATENCY + 1 + len(instructions) - 1 <= ended <= LATENCY + 1 + most


@pytest.mark.parametrize("name", NAMES)
@given(first=INSTRUCTIONS, second=INSTRUCTIONS)
@settings(max_examples=25)  # what one run leaves to the next, it leaves in most of them
def test_a_run_does_not_depend_on_another(name, first, second):
    alone = ended_ns(name, second)
    ended_ns(name, first)
    assert ended_ns(name, second) == alone


@cache
def of_one_sector_behind(name: str) -> float:
    """Return by how much one sector ends later behind an instruction of 40 lines."""
    return ended_ns(name, [[(0, 1)] * 40, [(0, 1)]]) - ended_ns(name, [[(0, 1)]])


@pytest.mark.parametrize("name", NAMES)
@given(lines=LINES)
def test_an_instruction_finds_nothing_of_the_one_before(name, lines):
    """The lines of a later instruction enter as those of a first one do, behind its end."""
    alone, behind = ended_ns(name, [lines]), ended_ns(name, [[(0, 1)] * 40, lines])
    assert behind - alone == of_one_sector_behind(name)
