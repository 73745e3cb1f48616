"""The screen of `train --against TRACE.json`: where the prediction is off, largest first."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.report.quantities import format_significant
from buddysim.report.screen import Column, Part, ScreenTable, make_printable, shorten
from buddysim.training.against.comparison import ComparedGroup, TraceComparison

#: Rows of each table.
_MAX_ROWS = 10

#: Fraction of the predicted operations of which fewer matched ones need a word.
_FEW = 0.5


def trace_parts(comparison: TraceComparison, heading: str) -> list[Part]:
    """Return the screen of a comparison.

    Parameters
    ----------
    heading : what is predicted
    """
    step = comparison.step
    measured = comparison.kernel_us
    ratio = comparison.predicted_us / measured if measured else float("nan")
    what = "kernels" if step.on_gpu else "operators on a CPU"
    parts: list[Part] = [
        heading,
        make_printable(f"against {comparison.path}  ({_gpu(comparison)}, {_steps(comparison)})"),
        "",
        f"predicted / measured  {format_significant(ratio)}  ({what}: {_ms(comparison.predicted_us)} of "
        f"{_ms(measured)} ms)",
        *([_predicted_step(comparison)] if comparison.predicted_step_us is not None else []),
        f"measured step         {_ms(step.us)} ms, {_ms(step.busy_us)} ms of it in {what}",
        f"operations matched    {comparison.matched} of {_count(comparison)} predicted",
        "",
    ]
    if step.on_gpu:
        parts += [_group_table("kind of work", comparison.kinds), ""]
    parts += [_group_table("operator", comparison.names), ""]
    if comparison.matched:
        parts += [_operation_table(comparison), ""]
    return [*parts, *_caveats(comparison)]


def _predicted_step(comparison: TraceComparison) -> str:
    assert comparison.predicted_step_us is not None
    return f"predicted step        {_ms(comparison.predicted_step_us)} ms, with what it waits for"


def _gpu(comparison: TraceComparison) -> str:
    return comparison.gpu or ("a GPU that it doesn't name" if comparison.step.on_gpu else "no GPU")


def _steps(comparison: TraceComparison) -> str:
    step = comparison.step
    if not step.label:
        return "no step is marked: all of it counts as one"
    return step.label if step.steps == 1 else f"{step.label}, the step of median length of {step.steps}"


def _count(comparison: TraceComparison) -> int:
    return sum(one.predicted_us is not None for one in comparison.operations)


def _group_table(name: str, groups: Sequence[ComparedGroup]) -> ScreenTable:
    columns = [
        Column(name, left=True, shorten_to=30),
        *map(Column, ("predicted,\nmeasured", "predicted\nms", "measured\nms", "difference\nms")),
    ]
    rows = [
        (
            make_printable(shorten(one.name, 34)),
            f"{one.predicted}, {one.measured}",
            _ms(one.predicted_us),
            _ms(one.measured_us),
            _ms(one.excess_us),
        )
        for one in groups[:_MAX_ROWS]
    ]
    return ScreenTable(columns, rows)


def _operation_table(comparison: TraceComparison) -> ScreenTable:
    columns = [
        Column("operation", left=True, shorten_to=18),
        Column("module", left=True, shorten_to=26),
        Column("predicted\nus"),
        Column("measured\nus"),
        Column("kernel", left=True, priority=1, shorten_to=20),
    ]
    rows = [
        (
            make_printable(one.name),
            make_printable(one.scope or one.phase),
            format_significant(one.predicted_us or 0.0),
            format_significant(one.measured_us or 0.0),
            make_printable(shorten(one.kernels[0] if one.kernels else "", 40)),
        )
        for one in comparison.largest()[:_MAX_ROWS]
    ]
    return ScreenTable(columns, rows)


def _caveats(comparison: TraceComparison) -> list[Part]:
    lines: list[Part] = ["read this first"]
    if not comparison.step.on_gpu:
        lines.append("- The trace has no kernels of a GPU: it shows which operations match, not how fast a GPU is.")
    if comparison.matched < _FEW * _count(comparison):
        lines.append("- Few operations match: check that model, batch, optimizer and options are those of the trace.")
    lines.append("- The profiler itself slows the host down; times of kernels hardly change.")
    return lines


def _ms(us: float) -> str:
    return format_significant(us / 1e3)
