"""Decisions of a training scheme before an iteration runs: a `Plan`, made from `Options`.

A scheme (one file of `buddysim/training/schemes/`) turns a network, a batch, a machine and a cost model into a plan;
`program`, `memory` and `timeline` carry the plan out and know no scheme.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from buddysim.base.pool import FitPolicy

if TYPE_CHECKING:
    from buddysim.training.cost import ConvAlgorithm

Direction = Literal["offload", "prefetch"]
Prefetch = Literal["published", "just-in-time", "on-demand"]
PREFETCHES: tuple[Prefetch, ...] = ("published", "just-in-time", "on-demand")


@runtime_checkable
class Compression(Protocol):
    """How maps are compressed for the link.

    `layer` is the index of the layer whose output the map is at the time of the copy: the last layer that wrote to it,
    for example the in-place ReLU behind a CONV, or the input layer. It is one of ``inputs`` of the layer whose forward
    step launches the offload.
    """

    def copy_ps(self, byte_count: int, layer: int, direction: Direction) -> int:
        """Picoseconds that the map of `byte_count` bytes (uncompressed) occupies its direction of the link."""
        ...

    def moved_bytes(self, byte_count: int, layer: int) -> int:
        """Bytes that cross the link for the map."""
        ...


@dataclass(frozen=True)
class Plan:
    """The decisions of one scheme for one network, batch and machine.

    Attributes
    ----------
    scheme : name that the scheme answered to
    algorithms : CONV algorithm by layer index, then pass (``"forward"``, ``"backward_data"``, ``"backward_filter"``)
    offload : layers whose X is copied to the host during their forward step; an input of such a layer moves only where
        the layer is its last consumer and a backward step still reads it
    prefetch : when an offloaded map comes back: ``"published"`` is the search of vDNN's Fig. 10, ``"just-in-time"``
        launches it with the nearest CONV or FC before the step that reads it, where only in-place layers lie between,
        else with the step right before; ``"on-demand"`` at the start of the step that reads it
    overlap : whether copies overlap with computations; False serialises them
    layerwise : False allocates network-wide, as frameworks did (vDNN, Sec. II-C); True from a pool, layer by layer
    unlimited : the GPU has as much memory as it takes (the oracle)
    compression : of maps on the link; None moves them as they are
    segments : first and last layer of each part that is recomputed in the backward pass (activation checkpointing)
    saves : maps that the backward step of a layer reads, by layer index, where the scheme's framework differs from
        ``Layer.needs``
    saved_bytes : bytes of the layer's own saved state (masks, index maps), by layer index, where they differ
    offload_saved : names and bytes of tensors that are copied out after a layer's forward step and back before its
        backward step, by layer index, each time it is saved (PyTorch's ``save_on_cpu``)
    notes : decisions worth showing, for example the passes that vDNN's dynamic policy tried
    assumptions : by subject, for the result's provenance; a note that repeats one ("subject: text") isn't shown twice
    """

    scheme: str
    algorithms: Mapping[int, Mapping[str, ConvAlgorithm]]
    offload: frozenset[int] = frozenset()
    prefetch: Prefetch = "published"
    overlap: bool = True
    layerwise: bool = True
    unlimited: bool = False
    compression: Compression | None = None
    segments: tuple[tuple[int, int], ...] = ()
    saves: Mapping[int, frozenset[str]] = field(default_factory=dict)
    saved_bytes: Mapping[int, int] = field(default_factory=dict)
    offload_saved: Mapping[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    assumptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """Choices of the user, the same for every scheme.

    Attributes
    ----------
    link : name in the machine's ``links``; None takes its default
    prefetch : how offloaded maps come back
    library : version of the CONV library; None takes the one that the machine is calibrated for
    precision : that layers compute in: a name of `cost.precision.PRECISIONS`
    fit : how the pool picks a free piece
    memory_bytes : GPU memory to use; None takes the machine's
    extra : options that schemes declare (`buddysim.training.option`), by name
    """

    link: str | None = None
    prefetch: Prefetch = "published"
    library: str | None = None
    precision: str = "fp32"
    fit: FitPolicy = "best-fit"
    memory_bytes: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
