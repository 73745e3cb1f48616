"""The list of what the Buddy Compression paper states, written before anything was measured."""

from __future__ import annotations

from buddysim.papers.buddy.read_off import AXIS, figures, workloads
from buddysim.papers.stated import numbers

NEEDS = {"programs", "networks", "hardware", "training model"}


def test_every_number_of_the_text_has_its_line_and_known_needs() -> None:
    of_text = [number for number in numbers("validation.md").values() if number.id.startswith("buddy-")]
    assert len(of_text) == 109
    for number in of_text:
        assert number.line > 0
        assert set(number.needs) <= NEEDS


def test_every_bar_that_was_read_off_is_a_number() -> None:
    read = [number for number in numbers("validation.md").values() if not number.line]
    shares = figures()["fig5b_share_of_entries_per_size"]
    bars = sum(map(len, figures()["fig3_ratio_over_time_10_snapshots"].values()))
    bars += sum(len(value) for value in figures()["fig5a_ratio_by_algorithm"].values() if isinstance(value, dict))
    bars += len(shares["HPC"]) + len(shares["DL"])
    for figure in ("fig7_ratio_and_buddy_accesses", "fig9_ratio_by_buddy_threshold"):
        bars += sum(map(len, figures()[figure].values()))
    assert len(read) == bars == 384
    assert {number.needs for number in read} == {("programs",), ("networks",)}


def test_what_is_above_the_axis_is_a_bound() -> None:
    above = [number for number in numbers("validation.md").values() if number.note == "above its axis"]
    assert {(number.rule, number.value) for number in above} == {("at-least", AXIS)}
    assert len(above) == 6


def test_groups() -> None:
    groups = list(workloads().values())
    assert (groups.count("HPC"), groups.count("DL")) == (10, 6)
    assert numbers()["fig7/GMEAN_DL/final_target"].needs == ("networks",)
