"""The plan of `fit` for the page."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.browser.arguments import parsed
from buddysim.browser.memory_series import memory_at_peak, memory_over_time
from buddysim.browser.question import command_line, error_part, fit_arguments
from buddysim.cli import fit
from buddysim.report.fit_answer import plan_answer
from buddysim.report.fit_lines import answer_lines
from buddysim.training.fitting.fit import answer_to
from buddysim.training.fitting.mixed_program import Solver, solve_with_scipy
from buddysim.training.result import PS_PER_MS

if TYPE_CHECKING:
    from buddysim.training.fitting.fit_result import FitResult
    from buddysim.training.fitting.tried_plans import TriedPlan

#: Is given what the page shows while the search goes on.
Report = Callable[[dict[str, Any]], None]


def find_plan(
    question: Mapping[str, str],
    folder: str | os.PathLike[str] = ".",
    report: Report | None = None,
    solve: Solver = solve_with_scipy,
) -> Iterator[dict[str, Any]]:
    """Find the plan of a question.

    Parameters
    ----------
    folder : of the files that the question names
    report : is called for each simulated plan
    solve : solves the search's integer programs

    Yields
    ------
    ``{"part": "plan"}`` with the rows, the answer in three lines and the texts to download; or ``"error"``
    """
    arguments = fit_arguments(question)
    try:
        args = parsed(fit, arguments)
        with contextlib.chdir(folder):
            request = replace(fit.question_of(args, args.machine), solve=solve)
            request.request.load_network()
        result = answer_to(request, progress=lambda count, one: _progress(report, count, one))
    except BuddysimError as error:
        yield error_part(error, question)
        return
    yield {"part": "plan", "command": command_line(arguments), **_shown(result)}


def _progress(report: Report | None, count: int, one: TriedPlan) -> None:
    if report is not None:
        report({"part": "search", "plans": count, "time_ms": one.time_ps / PS_PER_MS, "used_bytes": one.used_bytes})


def _sentence(result: FitResult) -> str:
    """Return the sentence that replaces that of the schemes; "" where the plan changes it in nothing."""
    plan, plain = result.result.to_dict(), result.plain.to_dict()
    return plan_answer(plan, plain) if result.fits and not plain["fits"] else ""


def _shown(result: FitResult) -> dict[str, Any]:
    try:
        code = result.plan_python()
    except BuddysimError:  # a plan for which there is no code
        code = ""
    counters = result.to_dict()
    return {
        "lines": answer_lines(result), "sentence": _sentence(result), "rows": counters["plan"],
        "scheme": result.scheme, "placement": result.placement,
        "fits": result.fits, "excess": result.excess, "bound_ms": counters["bounds.time_ms"],
        "time_ms": counters["time_ms"], "time_min_ms": counters["time_min_ms"], "time_max_ms": counters["time_max_ms"],
        "used_bytes": counters["used_bytes"], "py": code, "shown": "the plan", "memory": memory_at_peak(result.outcome),
        "over_time": memory_over_time(result.outcome), "capacity_bytes": result.budget_bytes,
        "time_error": result.result.provenance["time_error"],
    }  # fmt: skip
