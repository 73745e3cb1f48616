"""Sharding as a part of a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import float32
from buddysim.training.options.sharding_options import ShardingRequest
from buddysim.training.sharding.data_parallel import BUCKET_BYTES, FIRST_BUCKET_BYTES, MIB, DataParallel
from buddysim.training.sharding.fully_sharded import FsdpPolicy, FullySharded
from buddysim.training.sharding.partitioned import PartitionedState
from buddysim.training.sharding.partitioned_weights import PartitionedWeights
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.recipes import Recipe
    from buddysim.training.step.training_step import TrainingStep


class FullSharding(StepPart):
    """FSDP2 of each block and of the model.

    Where a recipe has masters, the parts in fp32 are these (`MixedPrecisionPolicy`): weights are gathered in the
    recipe's format, and gradients reduced in fp32.
    """

    def __init__(self, request: ShardingRequest, recipe: Recipe) -> None:
        masters = recipe.masters
        self.policy = FsdpPolicy(
            request.gpus,
            own_dtype=float32 if masters else None,
            param_dtype=recipe.weights if masters else None,
            reduce_dtype=request.reduce_dtype or (float32 if masters else None),
            reshard_after_forward=request.reshard,
            gather_ahead=request.gather_ahead,
        )

    def model_built(self, step: TrainingStep) -> None:
        FullySharded(step.tape, step.model, self.policy)


def sharding(options: ConfigOptions, recipe: Recipe) -> StepPart | None:
    """Return the part of several GPUs.

    Raises
    ------
    BuddysimError
        an optimizer that updates weights before their gradients are reduced
    """
    request = options.sharding
    if request is None:
        return None
    if options.optimizer_in_backward:
        raise BuddysimError(f"{request.kind}: gradients are reduced first: expected no optimizer_in_backward")
    if request.kind == "fsdp":
        return FullSharding(request, recipe)
    bucket = None if request.bucket_mib is None else request.bucket_mib * MIB
    if request.kind == "ddp":
        return DataParallel(request.gpus, bucket or BUCKET_BYTES, bucket or FIRST_BUCKET_BYTES)
    if request.kind == "zero3":
        adapters = options.adapters
        if adapters is not None and adapters.quantized and adapters.library == "torchtune":
            raise BuddysimError(
                "zero3: not simulated with quantised tensors of torchao, which DeepSpeed does not divide: expected "
                "lora_library peft"
            )
        return PartitionedWeights(request.gpus, masters=recipe.masters, bucket_bytes=bucket)
    stage = int(request.kind.removeprefix("zero"))
    return PartitionedState(stage, request.gpus, masters=recipe.masters, bucket_bytes=bucket)
