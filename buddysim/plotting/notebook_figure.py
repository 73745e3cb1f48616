"""A figure that a notebook displays without matplotlib's inline backend."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter, ScalarFormatter

from buddysim.base.boundary import ending, inside


class NotebookFigure(Figure):
    """matplotlib's figure, with the PNG image that a notebook displays; texts with ``$`` are no formulas in it."""

    def savefig(self, *arguments: Any, **more: Any) -> None:
        """Write the figure; names of networks, files and schemes appear as they are."""
        show_texts_as_they_are(self)
        super().savefig(*arguments, **more)

    def _repr_png_(self) -> bytes | None:
        return inside(self._png, self._no_png)

    def _no_png(self, error: BaseException) -> None:
        """Print the error; the notebook then shows the figure's text."""
        ending(error).tell()

    def _png(self) -> bytes:
        png = io.BytesIO()
        self.savefig(png, format="png")
        return png.getvalue()


def show_texts_as_they_are(figure: Figure) -> None:
    """Show all texts without formulas, but for the powers of ten that matplotlib writes at numbers of an axis."""
    numbers: set[int] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [axis.get_offset_text(), *axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]
            if isinstance(axis.get_major_formatter(), LogFormatter | ScalarFormatter):
                numbers.update(map(id, labels))
    for text in figure.findobj(Text):
        if id(text) not in numbers:
            text.set_parse_math(False)
