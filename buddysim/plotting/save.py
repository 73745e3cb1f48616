"""A figure as a picture file."""

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

#: What each kind of picture must leave out to be the same bytes for the same figure.
_UNDATED = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def check_figure_file(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = ()) -> None:
    """Refuses a file that `save_figure` couldn't write, before anything is simulated.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, a missing folder, no permission, or one of the `inputs`
    """
    if Path(path).suffix.lower() not in _UNDATED:
        raise BuddysimError(f"{path}: expected a name that ends in {', '.join(_UNDATED)}")
    check_output(path, inputs)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure to a file: the same bytes for the same figure, and the whole file or nothing.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, or a file that can't be written
    """
    import matplotlib

    check_figure_file(path)
    suffix = Path(path).suffix.lower()
    # Letters stay letters: TrueType in .pdf, which publishers ask for, and text in .svg.
    with (
        matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "buddysim"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a name with rare letters: boxes
        write_with(
            path, lambda part: figure.savefig(part, format=suffix[1:], dpi=figure.dpi, metadata=_UNDATED[suffix])
        )
