"""Figures as files, by matplotlib."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.output import write_with
from buddysim.base.parsers.refusal import refusal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Metadata to leave out of each format, so that one figure always gives the same bytes.
UNDATED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_EPOCH = "SOURCE_DATE_EPOCH"


def write_figure_file(figure: Figure, path: str | os.PathLike[str], settings: Any, **options: Any) -> None:
    """Write a figure in the format that the file's name ends in: the same bytes for the same figure, or nothing.

    Parameters
    ----------
    settings : matplotlib's, for the time of writing
    options : further ones of ``savefig``

    Raises
    ------
    BuddysimError
        where it can't be written or plotted, or matplotlib doesn't take a variable of the environment
    """
    epoch = os.environ.get(_EPOCH)
    if epoch is not None and not (epoch.isascii() and epoch.isdecimal()):
        raise BuddysimError(f"{_EPOCH}: {shortened(epoch)}: expected seconds since 1970")
    suffix = Path(path).suffix.lower()

    def save(part: Path) -> None:
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        try:
            with rc_context(settings), warnings.catch_warnings():
                # A name with letters that the font lacks.
                warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
                Figure.savefig(figure, part, format=suffix[1:], metadata=UNDATED[suffix], **options)
        except OSError:
            raise
        except Exception as error:
            raise refusal(error, f"{os.fspath(path)}: the figure can't be plotted") from None

    write_with(path, save)
