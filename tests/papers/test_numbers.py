"""Each of the papers' numbers is listed once, simulated once, and compared by its rule."""

from __future__ import annotations

import pytest

from buddysim.papers.paper_comparison import INPUT, NOT_REPRODUCED, RULES, PaperComparison
from buddysim.papers.reported_values import (
    ReportedNumber,
    ReportedValue,
    paper_folders,
    reported_value,
    reported_values,
)
from buddysim.papers.simulated_values import SimulatedValue, simulation_functions


def test_every_number_has_its_measurement_and_every_measurement_its_number() -> None:
    assert set(simulation_functions()) == set(reported_values())


def test_every_number_names_its_paper_and_has_a_value() -> None:
    titles = tuple(str(paper.TITLE) for paper in paper_folders())
    for id, number in reported_values().items():
        assert number.where.startswith((*titles, "derived: ")), id
        assert number.value not in ("", ()), id
        assert number.rule in RULES, id


def test_ranges_are_tuples_of_floats() -> None:
    low, high = reported_value("unused")
    assert isinstance(low, float)
    assert low < high


@pytest.mark.parametrize(
    ("rule", "reference", "simulated", "reproduced"),
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
        ("memory", 10.0, None, False),
    ],
)
def test_the_rules(rule: str, reference: ReportedNumber, simulated: ReportedNumber | None, reproduced: bool) -> None:
    number = ReportedValue("x", "vDNN I", reference, "what", rule, "%")
    assert (PaperComparison(number, SimulatedValue(simulated)).status == NOT_REPRODUCED) is not reproduced


def test_an_input_that_the_simulator_has_otherwise_is_not_reproduced() -> None:
    number = ReportedValue("x", "vDNN I", 336.0, "memory bandwidth", "input", "GB/s")
    assert PaperComparison(number, SimulatedValue(336.0)).status == INPUT
    assert PaperComparison(number, SimulatedValue(320.0)).status == NOT_REPRODUCED
