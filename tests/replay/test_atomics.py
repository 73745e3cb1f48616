"""Atomics serialize at the atomic unit of their L2 slice."""

from __future__ import annotations

import pytest

from tests.replay.bare import run_warps, tiny_machine

BUCKET_PS = 1 << 16  # within which the order at a port is not resolved


def time_of(interval: str, entries: list[int]) -> int:
    """Return a warp for each entry, with one atomic on its first sector."""
    machine = tiny_machine(l2__atomic_interval=interval, l1__enabled=False, l2__size="64 KiB")
    return run_warps(machine, [[(2, [(entry, 1, 0)])] for entry in entries])[0]["now_ps"]


@pytest.mark.parametrize("nanoseconds", [20, 100, 1000])
def test_atomics_on_one_sector_serialize(nanoseconds):
    """The last of 16 warps waits for 15 atomic operations, and has its own."""
    expected_wait_ps = 16 * nanoseconds * 1000
    waited = time_of(f"{nanoseconds} ns", [0] * 16) - time_of("1 ps", [0] * 16)
    assert expected_wait_ps - BUCKET_PS <= waited <= expected_wait_ps + BUCKET_PS


def test_slices_have_atomic_units_of_their_own():
    entries = [0, 1, 2, 3]  # one of each slice
    assert time_of("1000 ns", entries) == time_of("1 ps", entries) + 999_999


def test_a_lone_atomic_takes_its_own_time():
    assert time_of("1000 ns", [0]) == time_of("1 ps", [0]) + 999_999
