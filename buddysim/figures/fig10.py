"""Buddy Compression, Fig. 10: the simulator's cycles against silicon, and its speed: a picture of that validation."""

from __future__ import annotations

from typing import NoReturn

from matplotlib.figure import Figure

from buddysim.figures.drawing import study
from buddysim.figures.drawing.source import Source
from buddysim.papers.buddy.study import NothingStored

TITLE = "Buddy Compression, Fig. 10: cycles against a real GPU: drawn by validate kernels"
ORDER = 112
STUDY = True
OPTIONS = study.OPTIONS


def data(source: Source) -> NoReturn:
    """Nothing of it is in a store of results.

    Raises
    ------
    NothingStored
        always
    """
    raise NothingStored(
        "fig10: cycles against a real GPU are no results of a study: 'validate kernels -o FOLDER' draws them"
    )


def draw(numbers: NoReturn) -> Figure:
    """Never reached: there are no numbers."""
    return numbers
