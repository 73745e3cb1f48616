"""A figure that a notebook displays without matplotlib's inline backend."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """matplotlib's figure, with the PNG image that a notebook displays."""

    def _repr_png_(self) -> bytes:
        png = io.BytesIO()
        self.savefig(png, format="png")
        return png.getvalue()
