"""What a recorded step does with what autograd saves: keep it, compute it again, offload it.

And what the host does: hold weights, update them. The rules are plain data: a scheme makes them, a plan holds them, and
the model of a configuration is recorded with them (`SavingPart`). Blocks are numbered in the order of
`autograd.blocks.blocks_of`.
"""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.options.checkpoint_rule import CheckpointRule
from buddysim.training.options.compression_rule import CompressionRule
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.optimizer_offload import OptimizerOffload
from buddysim.training.options.weights_offload import WeightsOffload


@dataclass(frozen=True)
class SavingRules:
    """Rules of one step; what no rule names stays on the GPU.

    Attributes
    ----------
    checkpoints : blocks that are computed again; no block is in two
    offload : what autograd saves outside of such blocks, and their inputs; None: it stays
    compression : what autograd saves, in fewer bits; where both select a module, this counts
    optimizer : how the host updates the weights; None: the GPU does
    weights : how weights are fetched from the host, which then updates them too; None: they stay on the GPU
    """

    checkpoints: tuple[CheckpointRule, ...] = ()
    offload: OffloadRule | None = None
    compression: CompressionRule | None = None
    optimizer: OptimizerOffload | None = None
    weights: WeightsOffload | None = None
