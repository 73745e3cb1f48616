"""The screen of `fit`: the answer in three lines, the plan by block range, bounds, single schemes."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.report.fit_lines import answer_lines
from buddysim.report.quantities import format_gib, format_significant, format_whole_percent
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.training.fitting.fit_result import FitResult
from buddysim.training.fitting.tried_plans import TriedPlan


def fit_parts(result: FitResult, saved: str = "") -> list[Part]:
    """Return the screen of an answer.

    Parameters
    ----------
    saved : where the answer is, and what else there is to request
    """
    return [
        *_heading(result), *answer_lines(result), "", *_plan(result), "", *_bounds(result), "", *_singles(result),
        *(["", saved] if saved else []),
    ]  # fmt: skip


def _heading(result: FitResult) -> list[str]:
    run = result.result.provenance
    options = run["network_options"]
    shown = [f"{name} {options[name]}" for name in ("sequence", "recipe") if name in options]
    rate = run["link_h2d_bytes_per_s"] / 1e9
    return [
        f"{run['network']}, batch {run['batch']}, on {run['machine']} in {format_gib(result.budget_bytes)} GiB "
        f"(link {run['link']} {format_significant(rate)} GB/s)",
        ", ".join([*shown, f"optimizer {run['optimizer']}"]),
    ]


def _plan(result: FitResult) -> list[Part]:
    if result.scheme:
        return [f"plan: that of {result.scheme}"]
    columns = [
        Column("groups", left=True, shorten_to=30),
        Column("what is saved", left=True, text=True, wrap_to=24),
        Column("held\nGiB"),
        Column("recomputed\nms", priority=1),
        Column("on the link\nms", priority=1),
    ]
    rows = []
    for row in result.rows:
        numbers = str(row.first) if row.first == row.last else f"{row.first}-{row.last}"
        rows.append(
            [numbers, row.choice, format_gib(row.held_bytes), _milliseconds(row.kernels_ps), _milliseconds(row.link_ps)]
        )
    named = f"{len(result.space.groups)} groups, {result.space.groups[0]} .. {result.space.groups[-1]}"
    where = f"optimizer and weights {result.placement}" if result.placement == "on the GPU" else result.placement
    return [f"plan of {named}; {where}", ScreenTable(columns, rows)]


def _milliseconds(ps: int) -> str:
    return format_significant(ps / 1e9) if ps else NOT_APPLICABLE


def _bounds(result: FitResult) -> list[str]:
    bounds = result.search.bounds
    lines = [f"no plan needs less than {format_gib(bounds.memory_bytes)} GiB"] if bounds.memory_bytes else []
    if bounds.time_ps is not None:
        excess = (
            ""
            if result.excess is None
            else f" (this plan takes at most {format_whole_percent(result.excess)} more than the best)"
        )
        lines.insert(
            0, f"no plan takes less than {format_significant(bounds.time_ps / 1e9)} ms within the budget{excess}"
        )
    tried = f"{len(result.search.tried)} plans simulated"
    tried += f", {result.search.too_large} more are too large" if result.search.too_large else ""
    return [*lines, f"{tried}; stopped: a longer search may find a better one" if result.search.stopped else tried]


def _singles(result: FitResult) -> list[Part]:
    columns = [Column("single scheme", left=True), Column("fits"), Column("time\nms"), Column("GPU\nGiB"),
               Column("host\nGiB", priority=1)]  # fmt: skip
    rows = [["this plan", *_cells(result.search.best)]]
    rows += [[name, *_cells(one)] for name, one in _by_time(result.search.singles.items())]
    return [ScreenTable(columns, rows)]


def _by_time(singles: object) -> Sequence[tuple[str, TriedPlan]]:
    return sorted(singles, key=lambda item: (not item[1].fits, item[1].time_ps))  # type: ignore[call-overload, no-any-return]


def _cells(one: TriedPlan) -> list[str]:
    time = format_significant(one.time_ps / 1e9)
    host = format_gib(one.pinned_bytes) if one.pinned_bytes else NOT_APPLICABLE
    return ["yes" if one.fits else "no", time if one.fits else f"({time})", format_gib(one.used_bytes), host]
