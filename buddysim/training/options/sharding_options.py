"""What a user asks of several GPUs, what is refused, and the options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.option import option_field
from buddysim.training.autograd.dtypes import DType, bfloat16, float32

Kind = Literal["ddp", "fsdp", "zero1", "zero2", "zero3"]
KINDS: tuple[Kind, ...] = ("ddp", "fsdp", "zero1", "zero2", "zero3")
LARGEST_GROUP = 1 << 16
REDUCE_FORMATS: dict[str, DType] = {"fp32": float32, "bf16": bfloat16}
#: What to use instead of parallelism that divides a layer's work.
_INSTEAD = {
    "tensor_parallel": "use fsdp N, which divides the same weights and gathers them block by block",
    "pipeline_parallel": "use fsdp N, or a config.json with the blocks of one stage (num_hidden_layers)",
    "context_parallel": "use fsdp N with the sequence of one GPU, or --scheme activation-checkpointing",
    "expert_parallel": "use fsdp N, which divides the experts' weights too",
}
#: Kinds that an option says something about.
_OF = {"bucket": ("ddp", "zero1", "zero2", "zero3"), "gather_ahead": ("fsdp",), "reduce_format": ("fsdp",)}
_GROUP = "several GPUs, of which one is simulated"
_REFUSED = "not simulated: says what to use instead"


@dataclass(frozen=True)
class ShardingRequest:
    """Several GPUs.

    Attributes
    ----------
    kind : what is divided, and by whose code
    gpus : how many
    bucket_mib : of a bucket of gradients; None: the default of the kind
    gather_ahead, reshard, reduce_dtype : see `fully_sharded.FsdpPolicy`
    """

    kind: Kind
    gpus: int
    bucket_mib: int | None = None
    gather_ahead: int | None = None
    reshard: bool = True
    reduce_dtype: DType | None = None


def read_sharding(options: ShardingOptions) -> ShardingRequest | None:
    """Return what the options say together; None of one GPU.

    Raises
    ------
    BuddysimError
        options that contradict each other, or a kind of parallelism that isn't simulated
    """
    for name, instead in _INSTEAD.items():
        if getattr(options, name) is not None:
            raise BuddysimError(f"{name} {getattr(options, name)}: not simulated: {instead}")
    named: list[Kind] = [kind for kind in KINDS if getattr(options, kind) is not None]
    if len(named) > 1:
        raise BuddysimError(f"{' and '.join(named)}: expected one of them: each divides what the others hold whole")
    kind = named[0] if named else None
    for name, kinds in _OF.items():
        if getattr(options, name) is not None and kind not in kinds:
            raise BuddysimError(f"{name} {getattr(options, name)}: expected with {' or '.join(kinds)} alone")
    if not options.reshard and kind != "fsdp":
        raise BuddysimError("reshard False: expected with fsdp alone")
    if kind is None:
        return None
    _check_range(kind, getattr(options, kind), LARGEST_GROUP, "GPUs")
    _check_range("bucket", options.bucket, 1 << 20, "MiB")
    _check_range("gather_ahead", options.gather_ahead, 1 << 10, "blocks")
    if options.reduce_format is not None and options.reduce_format not in REDUCE_FORMATS:
        nearest = hint(options.reduce_format, REDUCE_FORMATS)
        raise BuddysimError(
            f"reduce_format {shortened(options.reduce_format)}: expected one of {', '.join(REDUCE_FORMATS)}{nearest}"
        )
    reduce_dtype = REDUCE_FORMATS[options.reduce_format] if options.reduce_format else None
    return ShardingRequest(
        kind, getattr(options, kind), options.bucket, options.gather_ahead, options.reshard, reduce_dtype
    )


def _check_range(name: str, value: int | None, largest: int, unit: str) -> None:
    if value is not None and not 1 <= value <= largest:
        raise BuddysimError(f"{name} {value}: expected 1 to {largest} {unit}")


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
