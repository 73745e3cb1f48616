"""The answer to a question of the page, part by part: `train` of every scheme, one after the other.

Each part is what `json.dumps` takes. The text to download is that of ``train --json``, by the same functions.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from buddysim.base.csvfile import csv_text
from buddysim.base.errors import BuddysimError
from buddysim.base.jsonfile import to_json
from buddysim.browser.arguments import parsed
from buddysim.browser.memory_series import memory_at_peak, memory_over_time
from buddysim.browser.question import command_line, error_part, train_arguments
from buddysim.cli import train
from buddysim.report.fit_answer import AS_IS, cheapest, fit_answer, in_use, is_lossy
from buddysim.report.scheme_rows import simplicity
from buddysim.report.training_caveats import training_caveats
from buddysim.training.driver import simulate_request
from buddysim.training.not_simulated import NotSimulatedError
from buddysim.training.result import TrainingResult

if TYPE_CHECKING:
    import argparse

    from buddysim.training.outcome import IterationOutcome
    from buddysim.training.request import TrainingRequest

AnswerPart = dict[str, Any]
_CSV = ("scheme", "fits", "time_ms", "time_min_ms", "time_max_ms", "memory.peak_bytes", "memory.peak_reserved_bytes",
        "memory.capacity_bytes", "offload.bytes", "host.peak_pinned_bytes")  # fmt: skip


def answer(question: Mapping[str, str], folder: str | os.PathLike[str] = ".") -> Iterator[AnswerPart]:
    """Answer a question.

    Parameters
    ----------
    folder : of the files that the question names

    Yields
    ------
    ``{"part": "start"}`` with the command; ``"scheme"``, one for each, the framework's own first; ``"end"`` with the
    sentence and the texts to download; or ``"error"`` with the field and the line of the command
    """
    arguments = train_arguments(question)
    try:
        yield {"part": "start", "command": command_line(arguments)}
        args = parsed(train, arguments)
        with contextlib.chdir(folder):
            request = train.request_of(args)
            request.load_network()
        yield from _answered(request, args)
    except BuddysimError as error:
        yield error_part(error, question)


def _answered(request: TrainingRequest, args: argparse.Namespace) -> Iterator[AnswerPart]:
    network = request.load_network()
    names = train.selected_schemes(args, recorded=network.recorded)
    plain = next((name for name in AS_IS if name in names), names[0])
    ordered = [plain, *(name for name in names if name != plain)]
    results: dict[str, dict[str, Any]] = {}
    shown: dict[str, IterationOutcome] = {}
    skipped: dict[str, str] = {}
    cost = request.cost_model()
    for count, name in enumerate(ordered, 1):
        try:
            outcome = simulate_request(replace(request, scheme=name), cost)
        except NotSimulatedError as error:
            skipped[name] = error.reason
            continue
        results[name] = TrainingResult.from_outcome(outcome).to_dict()
        best = plain if results[plain]["fits"] else cheapest(results, simplicity(results))
        shown = {other: one for other, one in {**shown, name: outcome}.items() if other in (plain, best)}
        sentence = fit_answer(results, simplicity(results), complete=count == len(ordered))
        yield {
            "part": "scheme", "done": count, "of": len(ordered), "sentence": sentence, **_point(name, results[name]),
            **(_details(name, outcome, results[name]) if name == plain else {}),
        }  # fmt: skip
    best = plain if results[plain]["fits"] else cheapest(results, simplicity(results))
    in_order = {name: results[name] for name in names if name in results}
    yield {
        "part": "end", "sentence": fit_answer(results, simplicity(results)), "best": best, "skipped": skipped,
        "json": to_json(in_order), "csv": _csv(in_order), "caveats": list(training_caveats(results)),
        **(_details(best, shown[best], results[best]) if best in shown else {}),
    }  # fmt: skip


def _point(name: str, result: Mapping[str, Any]) -> AnswerPart:
    """One scheme in the diagram of time against memory."""
    return {
        "scheme": name, "fits": result["fits"], "lossy": is_lossy(result), "nothing": result["nothing_to_do"],
        "time_ms": result["time_ms"], "time_min_ms": result["time_min_ms"], "time_max_ms": result["time_max_ms"],
        "used_bytes": in_use(result), "capacity_bytes": result["memory.capacity_bytes"],
    }  # fmt: skip


def _details(name: str, outcome: IterationOutcome, result: Mapping[str, Any]) -> AnswerPart:
    """Memory of one scheme, at the peak and over time."""
    return {
        "shown": name, "memory": memory_at_peak(outcome), "over_time": memory_over_time(outcome),
        "time_error": result["provenance"]["time_error"], "capacity_bytes": outcome.capacity or 0,
    }  # fmt: skip


def _csv(results: Mapping[str, Mapping[str, Any]]) -> str:
    return csv_text([_CSV, *([name, *(result[key] for key in _CSV[1:])] for name, result in results.items())])
