"""Gist's numbers are compared as the paper reports them: the worked example, shapes, and earlier choices."""

from __future__ import annotations

import pytest

from buddysim.papers.gist.encodings import program_of, worked_example
from buddysim.papers.gist.mfr import bytes_by_category, immediate, parts_gib, stashed
from buddysim.papers.gist.paper_networks import DENSITY, FORMATS, NETWORKS, mfr, run
from buddysim.papers.paper_comparison import NOT_REPRODUCED, REPRODUCED, SHAPE_ONLY, PaperComparison
from buddysim.papers.reported_values import ReportedValue, reported_values
from buddysim.papers.simulated_values import SimulatedValue
from buddysim.training.iteration.allocators import StaticGroups


def test_every_number_has_its_line_and_known_needs() -> None:
    simulated = [number for number in reported_values().values() if number.where.startswith("Gist")]
    assert len(simulated) == 68
    for number in simulated:
        assert number.line > 0
        assert set(number.needs) <= {"sparsity", "accuracy", "codec times"}


def test_what_was_chosen_before_measuring() -> None:
    assert DENSITY == 0.38
    assert FORMATS == {"AlexNet": "fp8", "NiN": "fp8", "OverFeat": "fp8", "VGG16": "fp16", "Inception": "fp10"}
    assert set(NETWORKS) == set(FORMATS)


def test_the_worked_example() -> None:
    (before, after), others = worked_example()
    assert StaticGroups().allocate(program_of(*before, *others), None).high_water == 18
    assert StaticGroups().allocate(program_of(*after, *others), None).high_water == 12


@pytest.mark.parametrize(
    ("rule", "unit", "reference", "simulated", "status"),
    [
        ("footprint", "x", 1.5, 1.6, REPRODUCED),
        ("footprint", "x", 1.5, 1.9, SHAPE_ONLY),
        ("footprint", "x", 1.5, 1.2, NOT_REPRODUCED),
        ("footprint", "x", 1.5, 0.9, NOT_REPRODUCED),
        ("tenth", "x", 7.0, 7.6, REPRODUCED),
        ("tenth", "x", 7.0, 4.0, SHAPE_ONLY),
        ("tenth", "x", 7.0, 3.0, NOT_REPRODUCED),
        ("three-points", "%", 4.0, 1.5, REPRODUCED),
        ("three-points", "%", 7.0, 3.6, SHAPE_ONLY),
        ("three-points", "%", 4.0, -0.5, NOT_REPRODUCED),
    ],
)
def test_rules(rule: str, unit: str, reference: float, simulated: float, status: str) -> None:
    assert (
        PaperComparison(ReportedValue("x", "Gist V", reference, "what", rule, unit), SimulatedValue(simulated)).status
        == status
    )


def test_parts_of_a_footprint_add_up() -> None:
    for scheme in ("gist-base", "gist-binarize", "gist-ssdc", "gist-dpr-fp8"):
        outcome = run("AlexNet", scheme, "investigation")
        assert sum(bytes_by_category(outcome).values()) == sum(stashed(outcome).values())
        parts = parts_gib("AlexNet", scheme)
        assert sum(parts.values()) == pytest.approx(outcome.footprint_bytes / 2**30)
        assert parts["immediate"] == immediate(outcome) / 2**30


def test_more_zeros_never_cost_memory() -> None:
    ratios = [mfr("VGG16", "gist-lossless", density=density) for density in (0.28, 0.38, 0.48)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > ratios[-1]
