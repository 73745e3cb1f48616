"""Every replay scheme meets its contract, and a result has the counters of all schemes."""

from __future__ import annotations

import re

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine.section import Section
from buddysim.replay.counter_definitions import COUNTERS
from buddysim.replay.schemes import BASELINE, DEFAULT, REGISTRY, counter_zeros
from tests.replay.bare import run_warps, tiny_machine

SCHEMES = dict(REGISTRY.items())


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_describes_itself(name):
    scheme = SCHEMES[name]
    assert scheme.SUMMARY
    assert "\n" not in scheme.SUMMARY
    assert all(subject and text for subject, text in scheme.assumptions.items())
    assert all(issubclass(section, Section) for section in scheme.SECTIONS.values())
    assert not (scheme.allocations_in_host_memory and scheme.uses_targets)


@pytest.mark.parametrize("name", SCHEMES)
def test_its_counters_are_those_that_it_declares(name):
    count, _ = run_warps(tiny_machine(), [[(0, [(0, 1, 0)])]], name)
    assert set(count["scheme"]) == set(SCHEMES[name].COUNTERS)
    for key, definition in SCHEMES[name].COUNTERS.items():
        assert re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", key)
        unit, _, text = definition.partition(": ")
        assert unit, key
        assert isinstance(count["scheme"][key], float if unit == "fraction" else int)
        assert text, key
        assert key not in count, "a counter that every scheme has"


@pytest.mark.parametrize("name", SCHEMES)
def test_the_rows_that_it_shows_name_counters(name):
    known = {*COUNTERS, *(key for one in SCHEMES.values() for key in one.COUNTERS | one.ENGINE_COUNTERS)}
    for row in SCHEMES[name].SHOWN:
        assert {*row.counters, *filter(None, [row.where])} <= known
        assert bool(row.counters) == (row.kind != "title")


def test_the_counters_of_all_schemes_are_known():
    assert set(counter_zeros()) == {name for scheme in SCHEMES.values() for name in scheme.COUNTERS}
    assert "um.page_faults" in counter_zeros()


def test_defaults_are_schemes():
    assert {BASELINE, DEFAULT} <= set(SCHEMES)
    baseline = SCHEMES[BASELINE]
    assert not any((baseline.uses_targets, baseline.uses_sizes, baseline.allocations_in_host_memory))


def test_an_unknown_scheme_names_the_nearest():
    with pytest.raises(BuddysimError, match=r"replay scheme 'bddy': unknown, expected one of .* \(nearest: buddy\)"):
        REGISTRY.find("bddy")
