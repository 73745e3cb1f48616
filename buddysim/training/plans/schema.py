"""The tables of a plan file and their fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.schema import Filled, Schema, one_of
from buddysim.training.autograd.compressed import CODE_BYTES
from buddysim.training.iteration.plan import Prefetch
from buddysim.training.options.optimizer_offload import HostDevice, Library

MAX_COUNT = 1 << 20

Count = Annotated[int, Field(ge=0, le=2**62)]
"""Bytes and picoseconds."""
Positive = Annotated[int, Field(ge=1, le=2**62)]
SavedAs = Literal["keep", "recompute", "offload", "compress"]
StoredAs = Literal["keep", "offload", "compress", "compress and offload"]
Read = Literal["x", "y", "dy", "mask", "saved"]
Copied = Annotated[tuple[Literal["feature_map", "state", "weights"], Positive], Field(strict=False)]
Segment = Annotated[tuple[int, int], Field(strict=False)]


class OptimizerFields(Schema):
    """An optimizer on the host."""

    device: HostDevice = "host"
    order: Library = "torchao"
    keep_gradients: bool = False
    delayed: bool = False


class WeightsFields(Schema):
    """Weights on the host."""

    device: HostDevice = "host"
    ahead: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 1


class BlockFields(Schema):
    """How blocks are saved; `together` to `ahead` belong to those that are computed again."""

    range: str
    saved: SavedAs
    together: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    stored: list[Filled] | None = None
    every_second_product: bool = False
    early_stop: bool = True
    offloaded_results: list[Filled] | None = None
    defer: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 1
    ahead: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 1
    modules: list[Filled] = Field(default_factory=list)


class CopiesFields(Schema):
    """How tensors are copied."""

    streams: Annotated[int, Field(ge=0, le=2)] = 1
    stash: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 5
    min_bytes: Count = 1024
    blocking: bool = False
    of: Literal["blocks", "model", "all"] = "blocks"


class CompressionFields(Schema):
    """How tensors are compressed."""

    bits: Literal[tuple(CODE_BYTES)] = 8  # type: ignore[valid-type]
    of: Literal["blocks", "model"] = "blocks"


class PlanFields(Schema):
    """What every plan file has."""

    scheme: str = "plan"
    network: str | None = None
    nothing_to_do: str = ""
    unlimited: bool = False
    memory_ratio: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    time_factor: Annotated[float, Field(ge=0.01, le=1000)] = 1.0
    optimizer: OptimizerFields | None = None
    weights: WeightsFields | None = None


class RecordedPlanFields(PlanFields):
    """The plan of a step that is recorded anew."""

    recorded: Literal[True]
    blocks: list[BlockFields] = Field(default_factory=list)
    copies: CopiesFields | None = None
    compression: CompressionFields | None = None


class EncodingFields(Schema):
    """An encoded feature map."""

    byte_count: Positive
    encode_ps: Count
    decode_ps: Count


class OffloadFields(Schema):
    """An offloaded feature map."""

    link_bytes: Count | None = None
    offload_ps: Count | None = None
    prefetch_ps: Count | None = None
    offload_deadline: Count | None = None
    prefetch_launch: Count | None = None
    host_encoding: EncodingFields | None = None
    host_encoding_deadline: Count | None = None


class AlgorithmFields(Schema):
    """An algorithm of a CONV."""

    name: str
    workspace_bytes: Count
    time_ps: Count


class AlgorithmsFields(Schema):
    """The algorithms of a CONV's passes."""

    forward: AlgorithmFields
    backward_data: AlgorithmFields
    backward_filter: AlgorithmFields


class StepFields(Schema):
    """Times of a layer's steps."""

    forward: Count | None = None
    backward: Count | None = None
    backward_data: Count | None = None
    backward_filter: Count | None = None


class LayerPlanFields(Schema):
    """Decisions about a layer."""

    name: str
    separate_backward: bool = False
    backward_reads: list[Read] | None = None
    saved_bytes: Count | None = None
    copied: list[Copied] = Field(default_factory=list)
    step_ps: StepFields | None = None
    feature_map: StoredAs = "keep"
    decode_before_use: bool = True
    encoding: EncodingFields | None = None
    offload: OffloadFields | None = None
    algorithms: AlgorithmsFields | None = None


class DecisionFields(PlanFields):
    """The plan of a network whose layers it names."""

    recorded: Literal[False] = False
    prefetch: Prefetch = "vdnn"
    overlap: bool = True
    layerwise: bool = True
    allocator: one_of(("pool", "live-bytes", "groups", "groups-of-others")) = "pool"  # type: ignore[valid-type]
    segments: list[Segment] = Field(default_factory=list)
    in_place: list[Filled] | None = None
    layer: list[LayerPlanFields] = Field(default_factory=list)
    footprint_baseline: DecisionFields | None = None


def wrong(field: str, value: object, expected: str) -> BuddysimError:
    """Return the error of a value of the right type that doesn't fit the network."""
    return BuddysimError(f"{field}: expected {expected}, got {shortened(value)}")


def refuse_others(fields: Schema, where: str, names: set[str], because: str) -> None:
    """Refuse fields that have no effect next to another one.

    Raises
    ------
    BuddysimError
        the first field of `names` that the file has
    """
    for name in type(fields).model_fields:
        if name in names and name in fields.model_fields_set:
            raise BuddysimError(f"{where}.{name}: expected none next to {because}")
