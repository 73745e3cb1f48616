"""What is best: the least time within the budget, or the least memory within a slowdown."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.fitting.tried_plans import TriedPlan


@dataclass(frozen=True)
class FitObjective:
    """The order of plans.

    Attributes
    ----------
    limit_ps : the longest time of a plan of which memory counts; None: time counts
    """

    limit_ps: int | None = None

    def rank(self, one: TriedPlan) -> tuple[int, ...]:
        """Return a key by which the best plan comes first."""
        misses = (int(not one.fits), one.shortfall_bytes)
        if self.limit_ps is None:
            return (*misses, one.time_ps, one.used_bytes, *_simplicity(one))
        return (*misses, max(0, one.time_ps - self.limit_ps), one.used_bytes, one.time_ps, *_simplicity(one))


def _simplicity(one: TriedPlan) -> tuple[int, int]:
    """Fewer block ranges come first, a scheme's own plan before any."""
    if one.assignment is None:
        return 0, 0
    return one.assignment.placement, sum(1 for _ in one.assignment.runs())
