"""Names of a user appear in figures as they are, also with the characters of matplotlib's formulas."""

from __future__ import annotations

from pathlib import Path

from buddysim.plotting.save import save_figure
from buddysim.plotting.style import make_figure

NAME = "$x^{$"


def test_no_name_is_a_formula(tmp_path: Path) -> None:
    figure, axes = make_figure(NAME)
    axes.bar([NAME], [10], label=NAME)
    axes.set_yscale("log")
    axes.set_xlabel(NAME)
    axes.legend()
    axes.annotate(NAME, (0, 1))
    save_figure(figure, tmp_path / "out.svg")
    text = (tmp_path / "out.svg").read_text()
    assert text.count(f">{NAME}<") == 5
    assert "<tspan" in text  # powers of ten at the logarithmic axis remain formulas
