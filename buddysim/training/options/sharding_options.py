"""The options of several GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.option import option_field
from buddysim.training.options.sharding_request import REDUCE_FORMATS, ShardingRequest, read_sharding

_GROUP = "several GPUs, of which one is simulated"
_REFUSED = "not simulated: says what to use instead"


@dataclass(frozen=True)
class ShardingOptions:
    """What is divided among GPUs, and how."""

    ddp: int | None = option_field(
        int, "GPUs that each hold the whole model and average gradients (DDP)", None, metavar="N", group=_GROUP
    )
    fsdp: int | None = option_field(
        int, "GPUs among which weights, gradients and optimizer state are divided (FSDP2)", None, metavar="N",
        group=_GROUP,
    )  # fmt: skip
    zero1: int | None = option_field(
        int, "GPUs among which the optimizer's state is divided (DeepSpeed, stage 1)", None, metavar="N", group=_GROUP
    )
    zero2: int | None = option_field(int, "the same, and gradients (stage 2)", None, metavar="N", group=_GROUP)
    zero3: int | None = option_field(int, "the same, and weights (stage 3)", None, metavar="N", group=_GROUP)
    bucket: int | None = option_field(
        int,
        "MiB of a bucket of gradients; 25 (the first one 1) with ddp, 5e8 elements with zero if not given",
        None, metavar="MIB", group=_GROUP,
    )  # fmt: skip
    gather_ahead: int | None = option_field(
        int, "blocks whose weights fsdp gathers ahead; the next one of the backward pass alone if not given", None,
        metavar="N", group=_GROUP,
    )  # fmt: skip
    reshard: bool = option_field(
        bool, "give gathered weights back between the forward and the backward pass, with fsdp", True, group=_GROUP
    )
    reduce_format: str | None = option_field(
        str, "number format in which gradients are reduced, with fsdp; fp32 where masters are, else the gradients'",
        None, metavar="NAME", group=_GROUP, choices=tuple(REDUCE_FORMATS),
    )  # fmt: skip
    tensor_parallel: int | None = option_field(int, _REFUSED, None, metavar="N", group=_GROUP)
    pipeline_parallel: int | None = option_field(int, _REFUSED, None, metavar="N", group=_GROUP)
    context_parallel: int | None = option_field(int, _REFUSED, None, metavar="N", group=_GROUP)
    expert_parallel: int | None = option_field(int, _REFUSED, None, metavar="N", group=_GROUP)

    @property
    def sharding(self) -> ShardingRequest | None:
        """What the options ask for; None of one GPU.

        Raises
        ------
        BuddysimError
            options that contradict each other, or a kind of parallelism that isn't simulated
        """
        return read_sharding(self)
