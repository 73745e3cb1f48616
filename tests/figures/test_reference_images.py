"""Images of the study's figures equal the reference images, pixel by pixel; captions, lines and shades of all."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.colors import to_rgb
from matplotlib.typing import ColorType

from buddysim.figures import REGISTRY, save_figure
from tests.figures.reference_images import FOLDER, OTHERS, others, pixels, plotted, reference, series, tables

FIGURES = [name for name, figure in REGISTRY.items() if getattr(figure, "STUDY", False)]


def test_every_figure_of_the_study_has_a_reference_image() -> None:
    assert set(tables()) == set(FIGURES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 100_000


@pytest.mark.parametrize("name", tables())
def test_image_equals_the_reference_image(name: str) -> None:
    assert others(pixels(plotted(name)), reference(name)) <= OTHERS


@pytest.mark.parametrize("name", ["fig3", "fig11"])
def test_another_font_does_not_change_the_image(name: str) -> None:
    with mpl.rc_context({"font.family": "monospace"}):
        assert others(pixels(plotted(name)), reference(name)) <= OTHERS


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "fig7" else pytest.mark.slow) for name in tables()]
)
def test_image_without_one_of_its_series_differs(name: str) -> None:
    figure = plotted(name)
    pixels(figure)
    assert len(series(figure)) >= 1
    for parts in series(figure):
        for part in parts:
            part.set_visible(False)
        assert others(pixels(figure), reference(name)) > 2 * OTHERS, parts[0]
        for part in parts:
            part.set_visible(True)


@pytest.mark.parametrize("name", tables())
def test_caption_names_captured_measured_or_simulated_values(name: str) -> None:
    caption = REGISTRY.find(name).draw(tables()[name]).get_supxlabel()
    assert re.search(r"[Cc]aptured|[Mm]easured|[Ss]imulated|[Mm]odelled|A model", caption), caption


@pytest.mark.parametrize("name", ["fig3", "fig5-compressors", "fig7", "fig9", "fig11", "fig12"])
def test_dashed_line_marks_no_gain(name: str) -> None:
    axes = REGISTRY.find(name).draw(tables()[name]).axes[0]
    assert [line.get_linestyle() for line in axes.lines if [*line.get_ydata()] == [1, 1]] == ["--"]


@pytest.mark.parametrize("name", tables())
def test_series_differ_in_grey(name: str) -> None:
    """Return bars by their shade, and lines by shade, dashes and marker together."""
    for axes in REGISTRY.find(name).draw(tables()[name]).axes:
        shades = sorted(grey(container[0].get_facecolor()) for container in axes.containers)
        assert all(dark + 0.09 < light for dark, light in pairwise(shades))
        looks = [(line.get_linestyle(), line.get_marker()) for line in axes.lines if line.get_label()[0] != "_"]
        named = [round(grey(line.get_color()), 1) for line in axes.lines if line.get_label()[0] != "_"]
        assert len({*zip(looks, named, strict=True)}) == len(looks)


def grey(colour: ColorType) -> float:
    """Return the brightness of a colour, 0 to 1."""
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_text_in_pdfs_is_text(tmp_path: Path) -> None:
    """Fonts are TrueType, as publishers ask for; some refuse matplotlib's own Type 3."""
    save_figure(REGISTRY.find("fig8").draw(tables()["fig8"]), tmp_path / "p.pdf")
    written = (tmp_path / "p.pdf").read_bytes()
    assert b"/CIDFontType2" in written
    assert b"/Type3" not in written
