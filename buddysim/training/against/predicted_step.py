"""The predicted step of a request, which a profiler trace is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.driver import simulate_request

if TYPE_CHECKING:
    from buddysim.training.outcome import IterationOutcome
    from buddysim.training.request import TrainingRequest


def predicted_step(request: TrainingRequest) -> IterationOutcome:
    """Return the outcome of a request whose operations are recorded one by one.

    Raises
    ------
    BuddysimError
        a network of the papers, whose operations aren't known, or a scheme that plans by layers
    """
    request = request.resolved()
    network = request.load_network()
    if not network.recorded:
        raise BuddysimError(f"--against: {network.name} has no recorded operations: expected a model's config.json")
    outcome = simulate_request(request)
    if not outcome.plan.as_recorded:
        raise BuddysimError(
            f"--against: scheme {outcome.scheme}: planned by layers, not operation by operation: expected eager, or "
            "one that recomputes or offloads saved tensors"
        )
    return outcome
