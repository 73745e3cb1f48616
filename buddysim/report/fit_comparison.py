"""The same question on several GPUs or links, in one table: what would a larger, nearer or slower memory be worth?"""

from __future__ import annotations

from collections.abc import Mapping

from buddysim.report.quantities import format_gib, format_significant
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.training.fitting.fit_result import FitResult

#: Ranges of a plan that a row shows.
_MAX_RANGES = 2


def comparison_parts(results: Mapping[str, FitResult], of: str, saved: str = "") -> list[Part]:
    """Return a screen with a row for each answer.

    Parameters
    ----------
    of : what differs: ``"machine"`` or ``"link"``
    """
    first = next(iter(results.values()))
    run = first.result.provenance
    columns = [
        Column(of, left=True), Column("GPU\nGiB"), Column("link\nGB/s"), Column("fits"), Column("time\nms"),
        Column("tokens\nper s" if first.result.counters["tokens_per_s"] else "samples\nper s"),
        Column("bound\nms", priority=1), Column("plan", left=True, text=True, wrap_to=24),
    ]  # fmt: skip
    return [
        f"{run['network']}, batch {run['batch']}: the best plan for each {of}",
        "",
        ScreenTable(columns, [_row(name, one) for name, one in results.items()]),
        "",
        *_begins_to_pay(results, of),
        *([saved] if saved else []),
    ]


def plan_summary(result: FitResult) -> str:
    """Return a plan in a few words."""
    if result.scheme:
        return result.scheme
    placement = [] if result.placement == "on the GPU" else [result.placement]
    changed = [row for row in result.rows if row.choice != "keep"]
    ranges = [f"{row.choice} {row.first}-{row.last}" for row in changed[:_MAX_RANGES]]
    more = [f"{len(changed) - _MAX_RANGES} ranges more"] if len(changed) > _MAX_RANGES else []
    return "; ".join([*placement, *ranges, *more]) or "as is"


def moves_saved_tensors(result: FitResult) -> bool:
    """Whether a plan copies what is saved to the host."""
    return any(row.link_ps for row in result.rows) or "offload-activations" in result.scheme


def _row(name: str, one: FitResult) -> list[str]:
    counters, run = one.result.counters, one.result.provenance
    bound = one.search.bounds.time_ps
    time = format_significant(counters["time_ms"])
    rate = counters["tokens_per_s"] or counters["samples_per_s"]
    return [
        name,
        format_gib(one.budget_bytes),
        format_significant(run["link_h2d_bytes_per_s"] / 1e9),
        "yes" if one.fits else "no",
        time if one.fits else f"({time})",
        f"{rate:,.0f}" if one.fits else NOT_APPLICABLE,
        NOT_APPLICABLE if bound is None else format_significant(bound / 1e9),
        plan_summary(one) if one.fits else f"{format_gib(one.search.best.shortfall_bytes)} GiB missing",
    ]


def _begins_to_pay(results: Mapping[str, FitResult], of: str) -> list[str]:
    """Say from which link on copies to the host are a part of the best plan."""
    if of != "link":
        return []
    first = next((name for name, one in results.items() if one.fits and moves_saved_tensors(one)), None)
    if first is None:
        return ["on none of these links do copies of saved tensors pay", ""]
    rate = results[first].result.provenance["link_h2d_bytes_per_s"] / 1e9
    return [f"copies of saved tensors pay from {format_significant(rate)} GB/s on ({first})", ""]
