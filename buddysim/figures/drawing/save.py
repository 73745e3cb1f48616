"""A figure as a picture file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from buddysim.base.atomic import check_writable, write_whole
from buddysim.base.errors import BuddysimError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What each kind of picture must leave out to be the same bytes for the same figure.
_UNDATED = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def check_picture(path: str | os.PathLike[str]) -> None:
    """Refuses a file that `save` couldn't write, before anything is simulated.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, a missing folder, or no permission
    """
    if Path(path).suffix.lower() not in _UNDATED:
        raise BuddysimError(f"{path}: expected a name that ends in {', '.join(_UNDATED)}")
    check_writable(path)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure to a file: the same bytes for the same figure, and the whole file or nothing.

    Raises
    ------
    BuddysimError
        another suffix than .png, .svg or .pdf, or a file that can't be written
    """
    import matplotlib

    check_picture(path)
    suffix = Path(path).suffix.lower()
    with matplotlib.rc_context({"svg.hashsalt": "buddysim", "svg.fonttype": "none"}):
        write_whole(path, lambda unfinished: figure.savefig(unfinished, format=suffix[1:], metadata=_UNDATED[suffix]))
