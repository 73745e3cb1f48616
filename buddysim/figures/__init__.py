"""Figures, one module each: ``vdnn_fig11.py`` is ``python -m buddysim plot vdnn-fig11``.

A figure is a module with

- ``TITLE``: what it shows, in a line,
- ``data(source)``: its numbers, from results that it asks a `ResultSource` for,
- ``draw(data)``: a matplotlib `Figure` of these numbers,
- ``FILE``, if it draws a file of the user's (`ResultSource.file`): name and description, such as
  ``("TRACE.bin", "a trace")``,
- ``OPTIONS``, if it takes options of the command (`ResultSource.columns`): their names,
- ``STUDY = True``, if it is of the Buddy Compression study: it draws what the store has of the study's workloads
  (`ResultSource.buddy`), and simulates nothing; ``plot --run`` makes what it asks for first,
- ``WIDTH_IN``, optionally: its width where none is asked for, inches,
- ``csv_rows()`` of what `data` gives, optionally: rows of a CSV file that is written beside the picture,
- ``ORDER``, optionally: its position in the list.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from buddysim.base.csvfile import csv_text
from buddysim.base.output import write_text
from buddysim.base.registry import Registry, modules_with
from buddysim.figures.shared.result_source import ResultSource
from buddysim.plotting.figure_format import FigureFormat
from buddysim.plotting.save import save_figure

__all__ = ["REGISTRY", "FigureFormat", "ResultSource", "plot", "save_figure"]

_CONTRACT = ("TITLE", "data", "draw")

REGISTRY: Registry[ModuleType] = Registry("figure", __name__, _CONTRACT, modules_with(*_CONTRACT))


def plot(
    name: str,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    source: ResultSource,
    look: FigureFormat | None = None,
) -> None:
    """Draws the figure of that name into a file.

    Parameters
    ----------
    name : one of ``REGISTRY.names()``
    path : .png, .svg or .pdf; several for the same figure in several kinds of file
    source : what the figure gets its results from
    look : its width, letters and title in print; without it as drawn

    Raises
    ------
    BuddysimError
        an unknown figure, a file that can't be written, results that can't be read
    """
    figure = REGISTRY.find(name)
    numbers = figure.data(source)
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(one) for one in path]
    if look is None or look.width_in is None:
        look = replace(look or FigureFormat(), width_in=getattr(figure, "WIDTH_IN", None))
    with source.result_errors(f"plot {name}"):
        drawn = look.apply(figure.draw(numbers))
        for one in paths:
            save_figure(drawn, one)
    if hasattr(numbers, "csv_rows"):
        write_text(paths[0].with_suffix(".csv"), csv_text(numbers.csv_rows()))
