"""One simulated iteration: the raw object that results, traces and figures are made from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.memory_usage import FailedRequest, MemoryOverTime, TensorAddresses, Usage
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.program import FORWARD_PART, Pass, Program, Step
from buddysim.training.iteration.schedule import IterationSchedule
from buddysim.training.networks.graph import Network
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.peak_memory import PeakMemory, peak_of_tape

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel


@dataclass(frozen=True)
class Baseline:
    """The reference of every result: the network-wide allocation with the fastest algorithms, on enough memory.

    `time_ps` is the oracle's time: every step's computation, nothing else.
    """

    time_ps: int
    features_time_ps: int
    usage: Usage
    features_usage: Usage


@dataclass(frozen=True)
class LayerScope:
    """Time and memory of the whole network, or of its feature-extraction layers only (as the vDNN paper counts).

    Attributes
    ----------
    time_ps : of the steps that count, stalls included
    compute_ps : computation of these steps, recomputation included
    stall_ps : stalls of these steps
    usage : memory by kind, over these steps and the tensors of these layers
    baseline_ps, baseline : the oracle's time, memory of the network-wide baseline
    """

    time_ps: int
    compute_ps: int
    stall_ps: int
    usage: Usage
    baseline_ps: int
    baseline: Usage

    @property
    def performance_vs_oracle(self) -> float:
        """Oracle's time over this time: 1 for no loss."""
        return self.baseline_ps / self.time_ps if self.time_ps else 1.0


@dataclass(frozen=True)
class OutOfMemory:
    """The reason for which an iteration does not fit, and its shortfall.

    Attributes
    ----------
    failure : the first request that memory cannot serve
    layer : name of the layer that makes the request; None if the request is for the whole iteration
    peak_excess_bytes : bytes by which the iteration's peak exceeds the GPU's memory; 0 if it does not
    """

    failure: FailedRequest
    layer: str | None
    peak_excess_bytes: int

    @property
    def message(self) -> str:
        """The request that fails, and by how much the peak exceeds the memory, in one line."""
        failure = self.failure
        requested, largest = format_size(failure.requested_bytes), format_size(failure.largest_free_bytes)
        if self.layer is None:
            exceeded = "pinned host memory" if failure.memory == "host" else "the GPU"
            text = f"{failure.kind} exceeds {exceeded} by {format_size(failure.shortfall_bytes)}"
            counts_all = self.peak_excess_bytes <= failure.shortfall_bytes
            return text if counts_all else f"{text}; peak exceeds by {format_size(self.peak_excess_bytes)}"
        at = f"{self.layer} {failure.pass_}"
        if failure.memory == "host":
            excess = format_size(failure.shortfall_bytes)
            return (
                f"{at}: {requested} requested (pinned host memory), {largest} free; peak exceeds the host by {excess}"
            )
        text = f"{at}: {requested} requested ({kind_text(failure.kind)}), largest free block {largest}"
        if self.peak_excess_bytes:
            return f"{text}; peak exceeds the GPU by {format_size(self.peak_excess_bytes)}"
        return f"{text}; {format_size(failure.free_bytes)} free in fragments"


@dataclass(frozen=True, repr=False)
class IterationOutcome:
    """One iteration of a network under a scheme.

    Where it doesn't fit (`fits` is False, `failure` has the reason), everything else describes the same iteration on a
    GPU and a host with as much memory as it takes.

    Attributes
    ----------
    scheme : its name
    capacity : bytes of GPU memory that `fits` was decided on; None for the oracle
    placement : addresses from a pool of that capacity (of unlimited size where it doesn't fit)
    pinned_bytes : the most host memory pinned at once
    baseline : oracle's time, memory of the network-wide baseline
    reference_bytes : `footprint_bytes` of the plan's reference; None where it has none
    """

    scheme: str
    network: Network
    batch: int
    machine: TrainingMachine
    cost: CostModel
    options: TrainingOptions
    plan: Plan
    schedule: IterationSchedule
    placement: TensorAddresses
    capacity: int | None
    failure: FailedRequest | None
    pinned_bytes: int
    baseline: Baseline
    reference_bytes: int | None = None

    def __repr__(self) -> str:
        """One line."""
        time = f"{self.time_ps / 10**9:.1f} ms, {'fits' if self.fits else 'does not fit'}"
        return f"<Outcome {self.scheme}: {self.network.name} x {self.batch} on {self.machine.name}, {time}>"

    @property
    def fits(self) -> bool:
        """Whether the GPU's memory and the host's pinned memory suffice for the whole network."""
        return self.failure is None

    @property
    def program(self) -> Program:
        """The steps."""
        return self.schedule.program

    @property
    def time_ps(self) -> int:
        """The iteration, forward and backward."""
        return self.schedule.time_ps

    @property
    def offload_bytes(self) -> int:
        """Bytes of tensors copied to the host, uncompressed."""
        return sum(task.byte_count for task in self.program.tasks if task.stream == "offload")

    @property
    def prefetch_bytes(self) -> int:
        """Bytes of tensors copied back, uncompressed."""
        return sum(task.byte_count for task in self.program.tasks if task.stream == "prefetch")

    @property
    def moved_bytes(self) -> int:
        """Bytes that crossed the link in both directions, compressed where the scheme compresses."""
        return sum(task.moved_bytes for task in self.program.tasks)

    @cached_property
    def stashed_bytes(self) -> int:
        """Bytes of feature maps, encoded or not, that the GPU stores from the forward to the backward part."""
        return sum(t.byte_count for t in self.program.tensors if self.program.stashed(t.number))

    @cached_property
    def footprint_bytes(self) -> int:
        """Bytes that the allocator needs for feature maps, encodings, decoded copies and gradient maps."""
        return self.plan.allocator.min_bytes(self.program, memory_usage.is_map_tensor)

    @property
    def footprint_ratio(self) -> float | None:
        """Gist's MFR: the reference's footprint over this one's; None where there is no reference."""
        if self.reference_bytes is None:
            return None
        return self.reference_bytes / self.footprint_bytes if self.footprint_bytes else 1.0

    def pass_ps(self, pass_: Pass) -> int:
        """Computation of all steps of a pass."""
        return sum(step.compute_ps for step in self.program.steps if step.pass_ == pass_)

    @property
    def host_ps(self) -> int:
        """Time that the host works on feature maps."""
        return sum(task.duration_ps for task in self.program.tasks if task.stream == "host")

    @property
    def collectives_ps(self) -> int:
        """Time of what GPUs gather and reduce together, each alone on their link."""
        return sum(task.duration_ps for task in self.program.tasks if task.stream in ("gather", "reduce"))

    @cached_property
    def all_layers(self) -> LayerScope:
        """The whole network."""
        return self._scope(None, self.baseline.time_ps, self.baseline.usage)

    @cached_property
    def feature_layers(self) -> LayerScope:
        """The feature-extraction layers."""
        return self._scope("features", self.baseline.features_time_ps, self.baseline.features_usage)

    def _scope(self, part: str | None, baseline_ps: int, baseline: Usage) -> LayerScope:
        counted = [step.index for step in self.program.steps if part is None or step.part == part]
        layers = self.network.layers
        return LayerScope(
            time_ps=sum(self.schedule.step_ps[index] for index in counted),
            compute_ps=sum(self.program.steps[index].compute_ps for index in counted),
            stall_ps=sum(stall.ps for stall in self.schedule.stalls if part in (None, layers[stall.layer].part)),
            usage=memory_usage.usage(self.program, self.schedule.step_ps, part, self.placement.groups),
            baseline_ps=baseline_ps,
            baseline=baseline,
        )

    @cached_property
    def peak_memory(self) -> PeakMemory:
        """When the peak is reached and by what, and what is saved by then."""
        step = self.program.steps[self.all_layers.usage.peak_step]
        start_ps = self.schedule.step_start_ps[step.index]
        if self.plan.as_recorded and isinstance(self.network, RecordedNetwork):
            return peak_of_tape(self.network.tape, start_ps)
        return PeakMemory(start_ps, step.pass_, self.network.layers[step.layer].name, None)

    @property
    def peak_allocated_bytes(self) -> int:
        """What `torch.cuda.max_memory_allocated` says: with rounding and workspaces, where the allocator has them."""
        caching = self.placement.caching
        return self.all_layers.usage.peak_bytes if caching is None else caching.peak_allocated_bytes

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """Bytes at the peak by kind; tensors' add up to it, and with the others to what the GPU holds."""
        usage, caching = self.all_layers.usage, self.placement.caching
        workspaces = caching.workspace_bytes if caching else 0
        return {
            **{str(kind): byte_count for kind, byte_count in usage.at_peak.items()},
            "library_workspace": workspaces,
            "fragmentation": self.placement.high_water - usage.peak_bytes - workspaces,
            "context": caching.outside_bytes if caching else 0,
        }

    def memory_over_time(self, part: str | None = None) -> tuple[list[int], MemoryOverTime]:
        """Start of each step (and end of the last one), in ps, and the bytes allocated in each step by kind."""
        return [*self.schedule.step_start_ps, self.time_ps], memory_usage.levels(
            self.program, part, self.placement.groups
        )

    def stall_ps_by_cause(self) -> dict[str, int]:
        """Time that the compute stream stood still, by cause."""
        stall_ps: Counter[str] = Counter()
        for stall in self.schedule.stalls:
            stall_ps[stall.cause] += stall.ps
        return dict(sorted(stall_ps.items()))

    def per_layer(self) -> Iterator[LayerOutcome]:
        """One row for each layer."""
        held = memory_usage.totals(memory_usage.levels(self.program, None, self.placement.groups))
        every_step = _by_layer(self.program.steps)
        every_task = _by_layer(self.program.tasks)
        every_stall = _by_layer(self.schedule.stalls)
        for layer in self.network.layers:
            steps, tasks, stalls = every_step[layer.index], every_task[layer.index], every_stall[layer.index]
            algorithms = self.plan.algorithms.get(layer.index, {})
            first = {step.pass_: step.index for step in reversed(steps)}

            def spent(pass_: Pass, steps: list[Step] = steps) -> int:
                return sum(step.compute_ps for step in steps if step.pass_ == pass_)

            yield LayerOutcome(
                layer=layer.index,
                name=layer.name,
                kind=layer.kind,
                part=layer.part,
                forward_ps=spent("forward"),
                recompute_ps=spent("recompute"),
                backward_ps=spent("backward"),
                encode_ps=spent("encode"),
                decode_ps=spent("decode"),
                update_ps=spent("update"),
                forward_stall_ps=sum(stall.ps for stall in stalls if stall.pass_ in FORWARD_PART),
                backward_stall_ps=sum(stall.ps for stall in stalls if stall.pass_ not in FORWARD_PART),
                offload_bytes=sum(task.byte_count for task in tasks if task.stream == "offload"),
                prefetch_bytes=sum(task.byte_count for task in tasks if task.stream == "prefetch"),
                workspace_bytes=max((step.workspace_bytes for step in steps), default=0),
                forward_memory_bytes=held[first["forward"]] if "forward" in first else 0,
                backward_memory_bytes=held[first["backward"]] if "backward" in first else 0,
                reuse_distance_ps=self._reuse_distance(first),
                algorithms={name: algorithm.name for name, algorithm in algorithms.items()},
            )

    def _reuse_distance(self, first: Mapping[Pass, int]) -> int | None:
        """From the end of a layer's forward to the start of its backward computation (vDNN, Fig. 6)."""
        if "forward" not in first or "backward" not in first:
            return None
        return self.schedule.step_start_ps[first["backward"]] - self.schedule.step_end_ps[first["forward"]]

    @property
    def out_of_memory(self) -> OutOfMemory | None:
        """Why it doesn't fit; None where it does."""
        if self.failure is None:
            return None
        needed = self.all_layers.usage.peak_bytes + self.placement.beside_tensors_bytes
        excess = max(0, needed - (self.capacity or 0))
        return OutOfMemory(self.failure, layer_name(self.network, self.failure.layer), excess)


class _HasLayer(Protocol):
    @property
    def layer(self) -> int: ...


_Item = TypeVar("_Item", bound=_HasLayer)


def _by_layer(items: Iterable[_Item]) -> defaultdict[int, list[_Item]]:
    by_layer: defaultdict[int, list[_Item]] = defaultdict(list)
    for item in items:
        by_layer[item.layer].append(item)
    return by_layer


def kind_text(kind: str) -> str:
    """A kind of tensor as messages name it: ``"encoded feature maps"``."""
    return {"encoded_maps": "encoded feature maps", "decoded_maps": "decoded feature maps"}.get(
        kind, kind.replace("_", " ")
    )


def layer_name(network: Network, index: int | None) -> str | None:
    """The name of a layer; None for no layer."""
    return None if index is None else network.layers[index].name


def format_size(byte_count: int) -> str:
    """Bytes in the largest binary unit below them: ``"1.53 GiB"``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if byte_count >= size:
            return f"{byte_count / size:.{2 if unit == 'GiB' else 1}f} {unit}"
    return f"{byte_count} B"


class LayerOutcome(NamedTuple):
    """One layer of an iteration. Times are picoseconds; memory is that of the GPU during the layer's step."""

    layer: int
    name: str
    kind: str
    part: str
    forward_ps: int
    recompute_ps: int
    backward_ps: int
    encode_ps: int
    decode_ps: int
    update_ps: int
    forward_stall_ps: int
    backward_stall_ps: int
    offload_bytes: int
    prefetch_bytes: int
    workspace_bytes: int
    forward_memory_bytes: int
    backward_memory_bytes: int
    reuse_distance_ps: int | None
    algorithms: dict[str, str]
