"""``train --against FILE``: the prediction next to the user's own measurement of the same step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.report.screen import Part
    from buddysim.training.request import TrainingRequest


def print_comparison(request: TrainingRequest, path: str, json_path: str | None) -> None:
    """Compare the step of a request with a file, by its content, and print or write the comparison.

    Parameters
    ----------
    path : a profiler trace, or a memory snapshot
    json_path : file for the whole comparison; ``"-"``: standard output, and no screen
    """
    from buddysim.base.jsonfile import write_json
    from buddysim.report.screen import print_screen
    from buddysim.training.against.kinds_of_files import kind_of_measurement

    network, machine = request.load_network(), request.load_machine()
    title = f"{network.name}, batch {request.batch}, on {machine.name}"
    parts: list[Part]
    if kind_of_measurement(path) == "memory snapshot":
        from buddysim.report.snapshot_screen import snapshot_parts
        from buddysim.training.against.memory_snapshot import snapshot_against

        memory = snapshot_against(path, request)
        content, parts = memory.to_dict(), [title, *snapshot_parts(memory)]
    else:
        from buddysim.report.trace_screen import trace_parts
        from buddysim.training.against.comparison import compare_with_trace

        times = compare_with_trace(path, request)
        content, parts = times.to_dict(), trace_parts(times, title)
    if json_path is not None:
        write_json(json_path, content)
    if json_path != "-":
        print_screen(parts)
