"""Format of a figure for print: width, font size, title, resolution."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a command that draws nothing doesn't load matplotlib
    from matplotlib.figure import Figure

#: Font size of axis labels before formatting, in points.
_DEFAULT_FONT = 9
_MIN_HEIGHT_IN = 1.8
_MAX_LEGEND_FRACTION = 0.75  # of the figure's width; the axis labels take the rest
_OVER_BARS = 0.3  # of an axis's height: margin for upright numbers over bars
_LETTERS_PER_IN, _CAPTION_LINE_IN = 17, 0.14  # letters of a caption


def _caption_in(figure: Figure, width_in: float) -> float:
    """Return the approximate height of the caption in a figure of a width."""
    letters = width_in * _LETTERS_PER_IN
    lines = sum(-(-len(paragraph) // letters) for paragraph in figure.get_supxlabel().splitlines())
    return lines * _CAPTION_LINE_IN


def _fit_texts(figure: Figure) -> None:
    """Fit the texts into a narrow figure: legends in more rows, overlapping labels upright."""
    from buddysim.plotting import style

    for text in figure.texts:
        text.set_wrap(True)
    if figure._suptitle is not None:  # type: ignore[attr-defined]
        figure._suptitle.set_wrap(True)  # type: ignore[attr-defined]
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        for columns in (3, 2, 1):
            if legend is None or legend.get_window_extent().width <= _MAX_LEGEND_FRACTION * figure.bbox.width:
                break
            texts = legend.get_texts()
            labels = [text.get_text() for text in texts]
            style.add_legend(
                axes, columns, handles=legend.legend_handles, labels=labels, fontsize=texts[0].get_fontsize()
            )
            legend = axes.get_legend()
            figure.draw_without_rendering()
    for axes in figure.axes:
        ticks = [label for label in axes.get_xticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in ticks]
        if any(left.x1 > right.x0 for left, right in itertools.pairwise(boxes)):
            for label in ticks:
                label.set_rotation(90)
            figure.set_figheight(figure.get_figheight() + max(box.width for box in boxes) / figure.dpi)
        wide = [text for text in axes.texts if text.get_window_extent().width > axes.bbox.width / max(len(ticks), 1)]
        for text in wide:
            text.set_rotation(90)
        if wide:
            bottom, top = axes.get_ylim()
            axes.set_ylim(bottom, top + _OVER_BARS * (top - bottom))


@dataclass(frozen=True)
class FigureFormat:
    """Format that a paper requires of its figures.

    Attributes
    ----------
    width_in : width in inches; None: unchanged. The height scales with it, down to a legible minimum
    font_pt : font size of axis labels in points; other texts scale with them
    title : whether the figure keeps its title and the caption under it; a paper's own caption may replace both
    dpi : resolution of .png in dots per inch
    """

    width_in: float | None = None
    font_pt: float | None = None
    title: bool = True
    dpi: float | None = None

    def apply(self, figure: Figure) -> Figure:
        """Format a figure, and return it."""
        from matplotlib.text import Text

        if not self.title:
            figure.suptitle("")
            figure.supxlabel("")
        if self.width_in is not None:
            width, height = figure.get_size_inches()
            flat = max(height * self.width_in / width, min(height, _MIN_HEIGHT_IN))
            more = _caption_in(figure, self.width_in) - _caption_in(figure, width)
            figure.set_size_inches(self.width_in, flat + more)
        if self.font_pt is not None:
            for text in figure.findobj(Text):
                text.set_fontsize(float(text.get_fontsize()) * self.font_pt / _DEFAULT_FONT)
            for axes in figure.axes:
                size = max((float(label.get_fontsize()) for label in axes.get_xticklabels()), default=self.font_pt)
                axes.tick_params(labelsize=size)
        if self.dpi is not None:
            figure.set_dpi(self.dpi)
        if self.width_in is not None:
            with warnings.catch_warnings():  # matplotlib warns until the texts fit
                warnings.simplefilter("ignore", UserWarning)
                _fit_texts(figure)
        return figure
