"""``train --against FILE``: the prediction next to the user's own measurement of the same step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.jsonfile import write_json
from buddysim.report.screen import print_screen

if TYPE_CHECKING:
    from buddysim.training.request import TrainingRequest


def print_comparison(request: TrainingRequest, path: str, json_path: str | None) -> None:
    """Compare the step of a request with a file, by its content, and print or write the comparison.

    Parameters
    ----------
    path : a profiler trace, or a memory snapshot
    json_path : file for the whole comparison; ``"-"``: standard output, and no screen
    """
    from buddysim.training.against.kinds_of_files import kind_of_measurement

    if kind_of_measurement(path) == "memory snapshot":
        raise BuddysimError(f"{path}: a memory snapshot: expected a profiler trace (.json, .json.gz)")
    from buddysim.report.trace_screen import trace_parts
    from buddysim.training.against.comparison import compare_with_trace

    comparison = compare_with_trace(path, request)
    if json_path is not None:
        write_json(json_path, comparison.to_dict())
    if json_path != "-":
        network, machine = request.load_network(), request.load_machine()
        print_screen(trace_parts(comparison, f"{network.name}, batch {request.batch}, on {machine.name}"))
