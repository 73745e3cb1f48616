"""Locations of lines computed eight at a time equal those computed one by one."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.machine import Machine
from buddysim.replay.engine.event_loop import ReplayEngine
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.schemes import REGISTRY
from tests.replay.bare import tiny_machine

ENTRIES = 1 << 16


def engine_of(machine: Machine) -> ReplayEngine:
    scheme = REGISTRY.find("buddy")()
    scheme.configure(machine, ENTRIES, None)
    return ReplayEngine(
        engine_numbers(machine, Fraction(1)),
        np.array([[0, ENTRIES, 1, 2]], dtype=np.int64),
        np.zeros(ENTRIES, np.uint8),
        scheme,
        machine.policies(),
    )


def assert_same(engine: ReplayEngine, entries: list[int]) -> None:
    eight, one = engine.locations(entries, True), engine.locations(entries, False)
    assert [line["entry"] for line in eight] == entries
    assert eight == one


@pytest.mark.parametrize("name", Machine.presets())
def test_locations_on_every_machine(name):
    machine = Machine.load(name)
    engine, draw = engine_of(machine), np.random.default_rng(1)
    for count in (1, 7, 8, 9, 31, 32, 255):
        assert_same(engine, draw.integers(0, 1 << 30, count).tolist())


@given(
    slices=st.sampled_from([4, 5, 6, 7, 12, 32, 48]),
    of_channel=st.sampled_from([1, 2]),
    sets=st.integers(8, 40),
    ways=st.sampled_from([1, 4, 5, 16, 24]),
    metadata_slices=st.integers(1, 9),
    entries=st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 2**12), min_size=1, max_size=20),
)
@settings(deadline=None)
def test_locations_on_any_shape(slices, of_channel, sets, ways, metadata_slices, entries):
    overrides: dict[str, Any] = {
        "l2__slices": slices * of_channel,
        "dram__channels": slices,
        "l2__ways": ways,
        "l2__size": f"{slices * of_channel * ways * sets * 128} B",
        "l1__size": f"{2 * sets * 128} B",  # of two ways
        "metadata_cache__slices": metadata_slices,
        "metadata_cache__size": f"{metadata_slices * 2 * 3 * 32} B",
    }
    assert_same(engine_of(tiny_machine(**overrides)), entries)
