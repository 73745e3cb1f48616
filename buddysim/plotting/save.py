"""Writes figures to files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.output import check_output
from buddysim.base.parsers.figure_file import UNDATED, write_figure_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_figure_file(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = ()) -> None:
    """Check that `save_figure` can write a file, before anything is simulated.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, a missing folder, no permission, or one of the `inputs`
    """
    if Path(path).suffix.lower() not in UNDATED:
        raise BuddysimError(f"{path}: unknown format: expected a name that ends in {', '.join(UNDATED)}")
    check_output(path, inputs)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file: the same bytes for the same figure, and the full file or nothing.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, or a file that cannot be written
    """
    from buddysim.plotting.notebook_figure import NotebookFigure, show_texts_as_they_are

    check_figure_file(path)
    # Text stays text: TrueType in .pdf, which publishers require, and text elements in .svg.
    settings = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "buddysim"}
    if isinstance(figure, NotebookFigure):
        show_texts_as_they_are(figure)
    write_figure_file(figure, path, settings, dpi=figure.dpi)
