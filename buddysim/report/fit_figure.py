"""Figures of `fit`: memory over time without and with the plan, time against memory; and time against the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from buddysim.plotting.notebook_figure import NotebookFigure
from buddysim.plotting.style import SERIES, style_axes
from buddysim.report.timeline_figure import draw_memory
from buddysim.training.fitting.fit_result import FitResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from buddysim.training.fitting.tried_plans import TriedPlan

_GIB, _MS = 2**30, 1e9
_ANSWER = "#e02020"


def draw_fit(result: FitResult) -> Figure:
    """Draw memory over time of the framework alone and of the plan, and the front of time against memory."""
    figure = NotebookFigure(figsize=(11, 7), dpi=110, layout="constrained")
    grid = figure.add_gridspec(2, 2)
    plain = figure.add_subplot(grid[0, 0])
    plan = figure.add_subplot(grid[0, 1], sharey=plain)
    for axes, outcome, title in ((plain, result.plain.outcome, "without a plan"), (plan, result.outcome, "the plan")):
        draw_memory(axes, outcome)
        axes.set_title(f"{title}: {outcome.time_ps / _MS:,.0f} ms", fontsize=9)
        axes.set_xlabel("time, ms", fontsize=8)
    most = max(float(axes.get_ylim()[1]) for axes in (plain, plan))
    plain.set_ylim(0, most)
    run = result.result.provenance
    figure.suptitle(f"{run['network']}, batch {run['batch']}, on {run['machine']}", fontsize=10)
    _draw_front(figure.add_subplot(grid[1, :]), result)
    return figure


def _draw_front(axes: Axes, result: FitResult) -> None:
    style_axes(axes)
    _points(axes, result.search.tried, color="#b0b8c0", s=12, label="plans simulated")
    front = result.front()
    axes.step([one.used_bytes / _GIB for one in front], [one.time_ps / _MS for one in front], where="pre",
              color=SERIES[0], linewidth=1, label="none is faster in less memory")  # fmt: skip
    for number, (name, one) in enumerate(result.search.singles.items()):
        _points(axes, [one], color=SERIES[number + 2], s=45, marker="s", label=name)
    _points(axes, [result.search.best], color=_ANSWER, s=110, marker="*", label="the plan", zorder=3)
    axes.axvline(result.budget_bytes / _GIB, color=_ANSWER, linestyle="--", linewidth=1, label="budget")
    bounds = result.search.bounds
    if bounds.time_ps is not None:
        axes.axhline(bounds.time_ps / _MS, color="#56687a", linestyle=":", linewidth=1, label="no plan is faster")
    axes.set_xlabel("GPU memory, GiB", fontsize=8)
    axes.set_ylabel("time of an iteration, ms", fontsize=8)
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.legend(fontsize=7, ncols=2, frameon=False)


def _points(axes: Axes, plans: Sequence[TriedPlan], **style: object) -> None:
    axes.scatter([one.used_bytes / _GIB for one in plans], [one.time_ps / _MS for one in plans], **style)  # type: ignore[arg-type]


def draw_link_sweep(results: Mapping[str, FitResult]) -> Figure:
    """Draw the time of the best plan, of single schemes that fit, and the bound, over the rate of the link."""
    figure = NotebookFigure(figsize=(8, 4.5), dpi=110, layout="constrained")
    axes = figure.subplots()
    style_axes(axes)
    rates = [one.result.provenance["link_h2d_bytes_per_s"] / 1e9 for one in results.values()]
    fitting = [one.outcome.time_ps / _MS if one.fits else None for one in results.values()]
    axes.plot(rates, fitting, color=_ANSWER, marker="*", label="best plan")  # type: ignore[arg-type]
    names = dict.fromkeys(name for one in results.values() for name in one.search.singles)
    for number, name in enumerate(names):
        singles = [one.search.singles.get(name) for one in results.values()]
        times = [one.time_ps / _MS if one is not None and one.fits else None for one in singles]
        axes.plot(rates, times, color=SERIES[number + 2], marker="s", markersize=3, label=name)  # type: ignore[arg-type]
    for name, rate in zip(results, rates, strict=True):
        axes.annotate(name, (rate, 0), rotation=90, fontsize=6.5, ha="center", va="bottom",
                      xycoords=("data", "axes fraction"))  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rate of the link, GB/s", fontsize=8)
    axes.set_ylabel("time of an iteration, ms", fontsize=8)
    axes.legend(fontsize=7, frameon=False)
    return figure
