"""Every number of the vDNN and cDMA papers is held against the simulator, and the page says what comes of it now."""

from __future__ import annotations

from collections import Counter

import pytest

from buddysim.figures.runs import Runs
from buddysim.papers.numbers import (
    BESIDE,
    CONTRADICTED,
    MEASURES,
    NOT_REPRODUCED,
    WITHIN,
    Judged,
    Number,
    Ours,
    numbers,
)
from tests.tools.test_tools import load


@pytest.fixture(scope="module")
def tool():
    return load("validate_training")


@pytest.fixture(scope="module")
def runs():
    return Runs(folder=None)


@pytest.fixture(scope="module")
def judged(tool, runs):
    return tool.validate(runs)


def test_every_number_is_measured_and_ids_are_unique(judged):
    ids = [number.id for number in numbers()]
    assert len(set(ids)) == len(ids) == len(MEASURES)
    assert set(ids) == set(MEASURES)


def test_memory_without_unpublished_workspace_is_within_seven_per_cent(judged):
    checked = [j for j in judged if j.number.rule == "memory" and not j.number.workspace]
    assert len(checked) >= 6
    for one in checked:
        theirs, ours = one.number.value, one.ours.value
        pairs = zip(theirs, ours, strict=True) if isinstance(theirs, tuple) else [(theirs, ours)]
        assert all(abs(mine / stated - 1) <= WITHIN for stated, mine in pairs), one


def test_at_most_five_are_not_reproduced_and_each_has_a_cause_in_numbers(judged):
    missed = [one for one in judged if one.verdict == NOT_REPRODUCED]
    assert len(missed) <= 5, [one.number.id for one in missed]
    for one in missed:
        assert any(character.isdigit() for character in one.ours.cause), one


def test_only_numbers_with_workspace_or_contradictions_are_set_beside(judged):
    for one in judged:
        if one.verdict == BESIDE:
            assert one.number.workspace
            assert one.ours.said
        if one.verdict == CONTRADICTED:
            assert one.number.contradicted


def test_the_page_is_what_the_simulator_gives_now(tool, judged, runs):
    written = tool.DOCUMENT.read_text(encoding="utf-8")
    assert written == tool.document(judged, runs), "docs/validation-training.md is out of date: run make validate"
    counts = Counter(one.verdict for one in judged)
    assert sum(counts.values()) == len(numbers())


@pytest.mark.parametrize(
    ("rule", "theirs", "ours", "reproduced"),
    [
        ("memory", 10.0, 10.7, True),
        ("memory", 10.0, 10.8, False),
        ("points", 50.0, 57.0, True),
        ("points", 50.0, 58.0, False),
        ("points", (50.0, 60.0), (43.0, 67.5), False),
        ("at-least", 60.0, 59.9, False),
        ("at-most", 60.0, 59.9, True),
        ("exact", 2.32, 2.325, True),
        ("exact", 2.32, 2.34, False),
        ("shape", "falls", "falls", True),
        ("shape", "falls", "rises", False),
    ],
)
def test_the_rules(rule, theirs, ours, reproduced):
    number = Number("x", "vDNN I", theirs, "what", rule, "%")
    assert (Judged(number, Ours(ours)).verdict == NOT_REPRODUCED) is not reproduced
