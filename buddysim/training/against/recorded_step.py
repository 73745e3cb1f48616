"""The recorded step of a request, which a measurement is compared with."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.request import TrainingRequest


def recorded_step(request: TrainingRequest) -> RecordedNetwork:
    """Return the recorded step of a request.

    Raises
    ------
    BuddysimError
        a network of the papers, whose operations aren't known
    """
    request = request.resolved()
    network = request.load_network()
    assert request.batch is not None
    if not network.recorded:
        raise BuddysimError(f"--against: {network.name} has no recorded operations: expected a model's config.json")
    recorded = network.at(request.batch, request.options.optimizer or "none")
    assert isinstance(recorded, RecordedNetwork)
    return recorded
