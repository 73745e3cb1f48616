"""The snapshot of a run next to the model that a request names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.caching_allocator.snapshot.comparison import SnapshotComparison, compare_with_snapshot
from buddysim.training.recorded_step.from_config import ConfigNetwork
from buddysim.training.recorded_step.run import record_step

if TYPE_CHECKING:
    from buddysim.training.request import TrainingRequest

ITERATIONS = 2
"""Of a recorded step: the first one's update makes the optimizer's state, the second one finds what it has left."""


def snapshot_against(path: str | os.PathLike[str], request: TrainingRequest) -> SnapshotComparison:
    """Compare a snapshot of a real run with two iterations of a request's model on its machine.

    Raises
    ------
    BuddysimError
        a network that no model's configuration describes, or a file that isn't a snapshot
    """
    request = request.resolved()
    network = request.load_network()
    if not isinstance(network, ConfigNetwork):
        raise BuddysimError(f"{os.fspath(path)}: {network.name} has no record of its memory: expected a config.json")
    assert request.batch is not None
    optimizer = request.options.optimizer or "none"
    options = network.config_options
    tape = record_step(
        network.config, options, network.recipe, request.batch, optimizer, iterations=ITERATIONS, steady=False
    )
    settings = options.allocator_settings() if options.alloc_conf else None
    return compare_with_snapshot(path, tape, settings, request.load_machine().workspace_bytes)
