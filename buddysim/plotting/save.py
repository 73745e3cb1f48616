"""Writes figures to files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.output import check_output, write_with

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Metadata to leave out of each format, so that one figure always gives the same bytes.
_UNDATED = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def check_figure_file(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = ()) -> None:
    """Check that `save_figure` can write a file, before anything is simulated.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, a missing folder, no permission, or one of the `inputs`
    """
    if Path(path).suffix.lower() not in _UNDATED:
        raise BuddysimError(f"{path}: unknown format: expected a name that ends in {', '.join(_UNDATED)}")
    check_output(path, inputs)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file: the same bytes for the same figure, and the full file or nothing.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, or a file that cannot be written
    """
    import matplotlib

    check_figure_file(path)
    suffix = Path(path).suffix.lower()
    # Text stays text: TrueType in .pdf, which publishers require, and text elements in .svg.
    with (
        matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "buddysim"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings(
            "ignore", "Glyph .* missing from", UserWarning
        )  # a name with letters that the font lacks
        write_with(
            path, lambda part: figure.savefig(part, format=suffix[1:], dpi=figure.dpi, metadata=_UNDATED[suffix])
        )
