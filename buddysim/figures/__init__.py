"""Figures, one module each: ``python -m buddysim plot vdnn-fig11`` draws ``vdnn_fig11.py``.

A figure is a module with

- ``TITLE``: its title, one line,
- ``data(source)``: its numbers, from results of a `ResultSource`,
- ``draw(data)``: a matplotlib `Figure` of these numbers,
- ``FILE``, if it draws a file of the user (`ResultSource.file`): name and description, such as
  ``("TRACE.bin", "a trace")``,
- ``DEFAULT_FILE``, if it draws a file of the package where the user names none: its path,
- ``OPTIONS``, if it takes options of the command (`ResultSource.columns`): their names,
- ``STUDY = True``, if it is of the Buddy Compression study: it draws the stored results of the study's workloads
  (`ResultSource.buddy`), and simulates nothing; ``plot --run`` first makes the results that it lacks,
- ``WIDTH_IN``, optionally: its default width, inches,
- ``csv_rows()`` of what `data` gives, optionally: rows of a CSV file that is written next to the figure,
- ``page()`` of what `data` gives, optionally: lines of a Markdown page that is written next to the figure,
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
from buddysim.base.returned import returned
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
    format: FigureFormat | None = None,
) -> None:
    """Draw a figure into a file.

    Parameters
    ----------
    name : one of ``REGISTRY.names()``
    path : .png, .svg or .pdf; several paths for several formats of the same figure
    source : source of the figure's results
    format : width, font size and title in print; None: unchanged

    Raises
    ------
    BuddysimError
        an unknown figure, a file that cannot be written, results that cannot be read
    """
    from matplotlib.figure import Figure

    figure = REGISTRY.find(name)
    numbers = figure.data(source)
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(one) for one in path]
    if format is None or format.width_in is None:
        format = replace(format or FigureFormat(), width_in=getattr(figure, "WIDTH_IN", None))
    formatted = format.apply(returned(figure.draw(numbers), Figure, f"figure {name}: draw", figure.draw))
    for one in paths:
        save_figure(formatted, one)
    if hasattr(numbers, "csv_rows"):
        write_text(paths[0].with_suffix(".csv"), csv_text(numbers.csv_rows()))
    if hasattr(numbers, "page"):
        write_text(paths[0].with_suffix(".md"), "\n".join(numbers.page()) + "\n")
