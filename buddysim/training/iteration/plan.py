"""Decisions of a training scheme before an iteration runs: a `Plan`, made from `TrainingOptions`.

A scheme (a file of `buddysim/training/schemes/`) makes a plan from a network, a batch, a machine and a cost model.
`build`, the allocators and `schedule` carry out the plan; they know no scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from buddysim.base.memory_pool import FITS, FitPolicy
from buddysim.base.option import option_field
from buddysim.base.signature import described
from buddysim.training.iteration.allocators import POOL, Allocator, LiveSetCounter
from buddysim.training.iteration.stash import Stash
from buddysim.training.optimizers import optimizer_names

if TYPE_CHECKING:
    from buddysim.training.cost import ConvAlgorithm
    from buddysim.training.networks.graph import Network
    from buddysim.training.options.optimizer_offload import OptimizerOffload
    from buddysim.training.options.saving_rules import SavingRules
    from buddysim.training.options.weights_offload import WeightsOffload

Prefetch = Literal["vdnn", "just-in-time", "on-demand"]
PREFETCHES: tuple[Prefetch, ...] = ("vdnn", "just-in-time", "on-demand")


@dataclass(frozen=True)
class Plan:
    """The decisions of one scheme for one network, batch and machine.

    Attributes
    ----------
    scheme : name of the scheme
    algorithms : CONV algorithm by layer index, then pass (``"forward"``, ``"backward_data"``, ``"backward_filter"``)
    stash : how a feature map is stored between its forward and its backward use, by the layer that owns it; the others
        stay on the GPU as they are. Feature maps that no backward step reads are freed
    prefetch : when an offloaded feature map is prefetched: ``"vdnn"`` is the search of vDNN's Fig. 10,
        ``"just-in-time"`` launches it with the nearest CONV or FC before the step that reads it, where only in-place
        layers lie between, else with the step right before; ``"on-demand"`` at the start of the step that reads it
    overlap : whether copies overlap with computations; False serialises them
    layerwise : False allocates network-wide, as frameworks did (vDNN, Sec. II-C); True step by step
    as_recorded : steps, allocations and frees are those of the network's record, operation by operation
    saving : how the network's step is recorded for this plan: what is computed again or offloaded, block by block;
        None: as it is
    unlimited : the GPU has enough memory (the oracle)
    allocator : assigns addresses to tensors
    in_place : the layers that run in place, among `Layer.in_place`; None: all of them. If set, owners of feature maps
        are those of `Network.in_place_only`
    separate_backward : layers whose backward pass is two steps: gradients of the weights, then dX, without X
    segments : first and last layer of each part that is recomputed in the backward pass (activation checkpointing)
    backward_reads : feature maps that the backward step of a layer reads, by layer index, where the scheme's framework
        differs from ``Layer.backward_reads``
    saved_bytes : bytes of the layer's own saved state (masks, pooling indices), by layer index, where they differ
    step_ps : computation time of a layer's ``"forward"`` or ``"backward"`` step, by layer index and pass, where it
        differs from the cost model; not of CONV layers
    offload_saved_tensors : names and bytes of tensors that are copied out after a layer's forward step and back before
        its backward step, by layer index, each time it is saved (PyTorch's ``save_on_cpu``)
    host_optimizer : how the host updates the weights of a network that isn't recorded anew; None: the GPU does
    host_weights : how their weights are fetched from the host; None: they stay on the GPU
    memory_ratio : bytes of tensors that the GPU's memory holds, relative to its size
    time_factor : factor of the time of every computation
    footprint_baseline : the plan whose footprint this one's is compared with (`IterationOutcome.footprint_ratio`);
        None: there is none
    nothing_to_do : why the scheme has nothing to do on this network; "" where it has
    notes : decisions to show, for example the passes of vDNN's dynamic policy
    assumptions : by subject, for the result's provenance; no note repeats one
    """

    scheme: str
    algorithms: Mapping[int, Mapping[str, ConvAlgorithm]]
    stash: Mapping[int, Stash] = field(default_factory=dict)
    prefetch: Prefetch = "vdnn"
    overlap: bool = True
    layerwise: bool = True
    as_recorded: bool = False
    saving: SavingRules | None = None
    unlimited: bool = False
    allocator: Allocator = POOL
    in_place: frozenset[int] | None = None
    separate_backward: frozenset[int] = frozenset()
    segments: tuple[tuple[int, int], ...] = ()
    backward_reads: Mapping[int, frozenset[str]] = field(default_factory=dict)
    saved_bytes: Mapping[int, int] = field(default_factory=dict)
    step_ps: Mapping[tuple[int, str], int] = field(default_factory=dict)
    offload_saved_tensors: Mapping[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    host_optimizer: OptimizerOffload | None = None
    host_weights: WeightsOffload | None = None
    memory_ratio: float = 1.0
    time_factor: float = 1.0
    footprint_baseline: Plan | None = None
    nothing_to_do: str = ""
    notes: tuple[str, ...] = ()
    assumptions: Mapping[str, str] = field(default_factory=dict)

    def as_recorded_if_idle(self, network: Network) -> Plan:
        """Return the plan, that of the record where nothing of a recorded network is stored in another way."""
        changes = self.stash, self.segments, self.step_ps, self.offload_saved_tensors, self.separate_backward
        on_host = self.host_optimizer is not None or self.host_weights is not None
        if not network.recorded or self.as_recorded or any(changes) or on_host or self.in_place:
            return self
        return replace(self, as_recorded=True, allocator=LiveSetCounter(), footprint_baseline=None)

    def recorded(self, network: Network) -> Network:
        """Return a network as the plan records it: itself, without rules of saving."""
        if self.saving is None:
            return network
        record_with = getattr(network, "record_with", None)
        if record_with is None:
            raise ValueError(f"{network.name} can't be recorded again: expected a plan without rules of saving")
        again: Network = record_with(self.saving)
        return again


def _precisions() -> Iterable[str]:
    from buddysim.training.cost.precision import PRECISIONS

    return PRECISIONS


@described
@dataclass(frozen=True)
class TrainingOptions:
    """Choices of the user, the same for every scheme.

    Attributes
    ----------
    extra : options that schemes declare (`buddysim.base.option`), by name
    """

    link: str | None = option_field(
        str, "name of the host link, one of the machine's links", None, metavar="NAME", completes="link"
    )
    prefetch: Prefetch = option_field(
        str, "rule of prefetching feature maps", "vdnn", metavar="RULE", choices=lambda: PREFETCHES
    )
    conv_library: str | None = option_field(
        str, "version of the convolution library, for example cudnn4", None, metavar="NAME"
    )
    precision: str = option_field(str, "number format of the layers", "fp32", metavar="NAME", choices=_precisions)
    channels_last: bool = option_field(bool, "feature maps have their channels last in memory", False)
    optimizer: str | None = option_field(
        str,
        "optimizer whose state is in GPU memory; adamw for a model's configuration, none (as the papers count) for "
        "other networks, if not given",
        None,
        metavar="NAME",
        choices=optimizer_names,
    )
    pool_policy: FitPolicy = option_field(
        str, "rule by which the pool selects a free block", "best-fit", metavar="POLICY", choices=FITS
    )
    memory_bytes: int | None = option_field(int, "GPU memory, instead of the machine's", None, metavar="SIZE")
    extra: Mapping[str, Any] = field(default_factory=dict)
