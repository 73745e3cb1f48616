"""How a figure looks in print: its width, its letters, its title, its dots."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.text import Text

#: The size of labels of axes in figures as they are drawn, in points.
_DRAWN_FONT = 9
_LEAST_HEIGHT_IN = 1.8


@dataclass(frozen=True)
class Look:
    """What a paper asks of its figures.

    Attributes
    ----------
    width_in : inches; None: as the figure was drawn. Height follows, but no figure is flatter than is legible
    font_pt : points of the labels of axes; other texts keep their proportion to them
    title : whether the figure keeps its title: a caption may say it
    dpi : dots per inch, of .png
    """

    width_in: float | None = None
    font_pt: float | None = None
    title: bool = True
    dpi: float | None = None

    def apply(self, figure: Figure) -> Figure:
        """Changes a figure that was drawn, and returns it."""
        if not self.title:
            figure.suptitle("")
        if self.width_in is not None:
            width, height = figure.get_size_inches()
            figure.set_size_inches(self.width_in, max(height * self.width_in / width, min(height, _LEAST_HEIGHT_IN)))
        if self.font_pt is not None:
            for text in figure.findobj(Text):
                text.set_fontsize(float(text.get_fontsize()) * self.font_pt / _DRAWN_FONT)
            for axes in figure.axes:
                size = max((float(label.get_fontsize()) for label in axes.get_xticklabels()), default=self.font_pt)
                axes.tick_params(labelsize=size)
        if self.dpi is not None:
            figure.set_dpi(self.dpi)
        return figure
