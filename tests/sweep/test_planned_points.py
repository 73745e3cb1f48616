"""A plan's points are those of the product of its axes, and it keeps little of each."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.sweep.planned_points import PlannedPoints
from buddysim.sweep.study import Study, StudyReader

SCHEMES = ("baseline-m", "vdnn-all-m", "vdnn-conv-m")


def study_of(batches: list[int], schemes: list[str], excluded: list[int]) -> Study:
    content = {"set": {"network": "alexnet"}, "grid": {"batch": batches, "scheme": schemes}}
    return StudyReader("test").read(content | ({"exclude": [{"batch": excluded}]} if excluded else {}))


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.lists(st.sampled_from(SCHEMES), min_size=1, max_size=4),
    st.lists(st.integers(1, 40), max_size=3),
)
def test_points_are_those_of_the_product_each_once(batches: list[int], schemes: list[str], excluded: list[int]) -> None:
    points = PlannedPoints(study_of(batches, schemes, excluded))
    expected = dict.fromkeys(pair for pair in itertools.product(batches, schemes) if pair[0] not in excluded)
    settings_of_points = [(point.settings["batch"], point.settings["scheme"]) for point in points.values()]
    assert settings_of_points == list(expected)
    assert all(points[key].key == key for key in points)


def test_baselines_that_the_study_lacks_come_last() -> None:
    trace = str(Path(__file__).parents[2] / "traces" / "lud256.bin")
    grid = {"scheme": ["buddy", "ideal"], "link.bandwidth": ["50GB/s", "150GB/s"]}
    content = {"set": {"trace": trace}, "grid": grid, "baseline": {"link.bandwidth": "150GB/s"}}
    points = PlannedPoints(StudyReader("test").read(content))
    assert [(each.settings["scheme"], each.settings["link.bandwidth"]) for each in points.values()] == [
        ("buddy", "50GB/s"), ("buddy", "150GB/s"), ("ideal", "50GB/s"), ("ideal", "150GB/s")
    ]  # fmt: skip
    assert not points.baselines
    points = PlannedPoints(StudyReader("test").read(content | {"baseline": {"link.bandwidth": "75GB/s"}}))
    (baseline,) = points.baselines
    assert baseline == list(points)[-1]
    assert points[baseline].settings == {"trace": trace, "scheme": "ideal", "link.bandwidth": "75GB/s"}


@pytest.mark.slow
def test_a_plan_of_many_points_keeps_little_of_each() -> None:
    """By hand: a key of 40 characters (89 B), a whole number (28 B), an entry of a table: under 400 B."""
    study = study_of(list(range(1, 501)), ["baseline-m", "vdnn-all-m"], [])
    PlannedPoints(study_of([1], ["baseline-m"], []))
    tracemalloc.start()
    points = PlannedPoints(study)
    stored_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(points) == 1000
    assert stored_bytes / 1000 < 400
