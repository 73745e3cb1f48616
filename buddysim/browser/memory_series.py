"""What holds the GPU's memory, as the page draws it: at the peak, and over time at few enough points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.plotting.memory_kinds import COLOURS, label_of
from buddysim.training.iteration.memory_usage import totals
from buddysim.training.result import PS_PER_MS

if TYPE_CHECKING:
    from buddysim.training.outcome import IterationOutcome

#: Points of a curve: each has the step of the largest total among those that it stands for.
MAX_POINTS = 400


def memory_at_peak(outcome: IterationOutcome) -> list[dict[str, Any]]:
    """Return the kinds that hold memory at the peak, in bytes; with what the GPU holds in addition to tensors."""
    return [_kind(kind, outcome) | {"bytes": size} for kind, size in outcome.bytes_by_kind.items() if size]


def memory_over_time(outcome: IterationOutcome) -> dict[str, Any]:
    """Return the tensors' bytes by kind over the iteration.

    Returns
    -------
    ``"time_ms"``, starts of steps; ``"kinds"``, each with its bytes in these steps
    """
    times, held = outcome.memory_over_time()
    used = {kind: amounts for kind, amounts in held.items() if any(amounts)}
    in_step = totals(held)
    width = -(-len(in_step) // MAX_POINTS)
    steps = [
        max(range(first, min(first + width, len(in_step))), key=lambda step: (in_step[step], -step))
        for first in range(0, len(in_step), width or 1)
    ]
    return {
        "time_ms": [times[step] / PS_PER_MS for step in steps],
        "end_ms": times[-1] / PS_PER_MS,
        "kinds": [_kind(kind, outcome) | {"bytes": [used[kind][step] for step in steps]} for kind in used],
    }


def _kind(kind: str, outcome: IterationOutcome) -> dict[str, str]:
    return {"kind": kind, "label": label_of(kind, outcome.network.recorded), "colour": COLOURS[kind]}
