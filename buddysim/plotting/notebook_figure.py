"""A figure that a notebook shows by itself, whatever of matplotlib it has loaded."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """matplotlib's figure, with the picture that a notebook asks for."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
