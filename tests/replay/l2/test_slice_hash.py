"""Contract of every L2 slice hash: eight units at a time as one, and each slice once in every aligned group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.replay.l2.slice_hash import REGISTRY
from tests.replay.bare import tiny_machine
from tests.replay.test_locations import engine_of

NAMES = REGISTRY.names()


def machine_with(slice_hash: str, slices: int, channels: int) -> Machine:
    return tiny_machine(
        l2__slice_hash=slice_hash, l2__slices=slices, l2__size=f"{slices * 4} KiB", dram__channels=channels
    )


@pytest.mark.parametrize("name", NAMES)
@given(group=st.integers(0, 2**20), bits=st.integers(0, 5), channel_bits=st.integers(0, 5))
def test_a_group_of_units_has_each_slice_once(name: str, group: int, bits: int, channel_bits: int) -> None:
    slices = 1 << bits
    engine = engine_of(machine_with(name, slices, 1 << channel_bits))
    units = [group * slices + offset for offset in range(slices)]
    eight, one = engine.locations(units, True), engine.locations(units, False)
    assert [line["slice"] for line in eight] == [line["slice"] for line in one]
    assert sorted(line["slice"] for line in one) == list(range(slices))


@pytest.mark.parametrize("name", NAMES)
def test_each_hash_spreads_a_stride_of_the_slices(name: str) -> None:
    """Units a multiple of the slices apart lie in one slice without a hash."""
    engine = engine_of(machine_with(name, 8, 8))
    slices = {line["slice"] for line in engine.locations([8 * number for number in range(64)], False)}
    assert len(slices) == 8


def test_a_name_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(BuddysimError, match=r"expected one of xor_fold, ipoly.*nearest: ipoly"):
        tiny_machine(l2__slice_hash="ipoli")


def test_a_machine_that_does_not_fit_its_hash_is_refused() -> None:
    with pytest.raises(BuddysimError, match=r"l2.slices: 12 with slice_hash ipoly: expected a power of two"):
        machine_with("ipoly", 12, 4)
