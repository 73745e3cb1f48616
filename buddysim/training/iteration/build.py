"""Makes the steps of one training iteration from a network and a plan.

Every step notes the feature maps that it reads, writes or defines (`ProgramBuilder`), with the encodings and copies of
the plan's stashes (`StashSteps`). Lifetimes follow from these uses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.training.collectives.contention import kernels_left
from buddysim.training.cost.host_rates import HostRates
from buddysim.training.cost.operators.host import LaunchQueue
from buddysim.training.iteration.host_steps import HostSteps
from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.program import Pass, Program, TensorKind
from buddysim.training.iteration.program_builder import ProgramBuilder, StepBuilder
from buddysim.training.iteration.recorded_program import recorded_program
from buddysim.training.iteration.stash_steps import StashSteps, link_ps
from buddysim.training.iteration.timeline import SharedFractions
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.recorded.work import Launcher, OperationWork
from buddysim.training.optimizers import Optimizer, find_optimizer

if TYPE_CHECKING:
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.cost import CostModel


def build(
    network: Network, batch: int, cost: CostModel, plan: Plan, link: HostLinkConfig, optimizer: str | None = None
) -> Program:
    """The iteration that `plan` describes, on a link with the rates of `link`."""
    if plan.as_recorded:
        assert isinstance(network, RecordedNetwork)
        program = recorded_program(network, cost, link, HostRates.of(cost.machine), plan.time_factor)
        return replace(program, shared=SharedFractions(*link.shared_fractions, compute=kernels_left()))
    network = network.in_place_only(plan.in_place)
    program = _IterationBuilder(network, batch, cost, plan, link, find_optimizer(optimizer)).program()
    program = replace(program, shared=SharedFractions(*link.shared_fractions))
    if plan.time_factor == 1:
        return program
    steps = (replace(step, compute_ps=round(step.compute_ps * plan.time_factor)) for step in program.steps)
    return replace(program, steps=tuple(steps))


class _IterationBuilder:
    def __init__(
        self,
        network: Network,
        batch: int,
        cost: CostModel,
        plan: Plan,
        link: HostLinkConfig,
        optimizer: Optimizer | None,
    ) -> None:
        self.network, self.batch, self.cost, self.plan, self.link = network, batch, cost, plan, link
        self.layers, self.optimizer = network.layers, optimizer
        self.map_bytes = [network.output_bytes(layer.index, batch) for layer in network.layers]
        self.builder = ProgramBuilder("temporaries" if network.recorded else "workspace")
        self.stash_steps = StashSteps(network, self.map_bytes, plan, link, self.builder)
        self.host_steps = HostSteps(plan, link, cost, self.builder, optimizer)
        self.weights: dict[int, list[int]] = {}
        self.accumulates = False  # whether gradients of an earlier pass are there
        self.with_gradient: set[int] = set()  # owners whose dY the pass has written
        described = cost.described is not None and not network.recorded
        self.queue = LaunchQueue(cost.operators.host) if described else None

    def program(self) -> Program:
        self._resident_tensors()
        first_backward = 0
        for number in range(self.network.repeated_passes if isinstance(self.network, RecordedNetwork) else 1):
            self.accumulates = number > 0
            self.with_gradient.clear()
            for layer in self.layers:
                self._forward(layer)
            first_backward = first_backward or len(self.builder.steps)
            self._backward()
        self._update()
        if self.plan.layerwise:
            self.host_steps.add_fetches()
            self.stash_steps.add_prefetches(first_backward)
            self.builder.settle_lives()
        else:
            self._network_wide()
        return replace(self.builder.program(), host_bytes=self.host_steps.host_bytes)

    # What a layer reads and writes.

    def _backward_reads(self, layer: Layer) -> frozenset[str]:
        return self.plan.backward_reads.get(layer.index, layer.backward_reads)

    def _saved_bytes(self, layer: Layer) -> int:
        return self.plan.saved_bytes.get(layer.index, layer.saved_bytes(self.batch))

    def _time_ps(self, layer: Layer, pass_: str) -> int:
        step_ps = self.plan.step_ps.get((layer.index, pass_))
        return self.cost.time_ps(layer, self.batch, pass_) if step_ps is None else step_ps

    def _launched_ps(self, launcher: Launcher, gpu_ps: int) -> int:
        """Return by how much later the GPU ends: a kernel's time, and what it waits for the host, where that is known.

        The host launches one operator for each layer and pass; layers without a kernel are views.
        """
        if self.queue is None or not gpu_ps:
            return gpu_ps
        return self.queue.launch(self.cost.launch_ps(OperationWork(0, launcher=launcher)), gpu_ps)

    def _use(self, step: StepBuilder, name: str, owner: int, *, defines: bool = False, writes: bool = False) -> None:
        if not self.plan.layerwise:
            return  # every tensor is live throughout: uses have no effect
        layer = self.layers[owner]
        byte_count = self.map_bytes[owner]
        if name in ("saved", "dw"):
            byte_count = self._saved_bytes(layer) if name == "saved" else self.network.layer_parameter_bytes(owner)
        self.builder.use(step, name, layer, byte_count, defines=defines, writes=writes)

    def _read_again(self, step: StepBuilder, owner: int) -> None:
        """Notes that a step of the backward part reads a feature map: itself, or its encoding."""
        name = self.stash_steps.structure(owner)
        if name == "y":
            self._use(step, name, owner)
        else:
            encoding = self.plan.stash[owner].encoding
            assert encoding is not None
            self.builder.use(step, name, self.layers[owner], encoding.byte_count)

    # The steps.

    def _resident_tensors(self) -> None:
        """Weights, their gradients and optimizer state; a recorded network's backward pass allocates its gradients."""
        kinds: tuple[TensorKind, ...] = ("weights",) if self.network.recorded else ("weights", "weight_gradients")
        if self.host_steps.has_weights:
            kinds = kinds[1:]
        for layer in self.layers:
            if layer.parameters:
                byte_count = self.network.layer_parameter_bytes(layer.index)
                if self.host_steps.updates:
                    self.host_steps.adopt(layer, byte_count)
                self.weights[layer.index] = [self.builder.keep(layer, kind, byte_count) for kind in kinds]
                if not self.host_steps.updates and (state := self._state_bytes(layer)):
                    self.weights[layer.index].append(self.builder.keep(layer, "optimizer_state", state))

    def _state_bytes(self, layer: Layer) -> int:
        if isinstance(self.network, RecordedNetwork):
            return self.network.layer_state_bytes(layer.index)
        return 0 if self.optimizer is None else self.optimizer.state_bytes(layer.parameters)

    def _forward(self, layer: Layer) -> None:
        self.stash_steps.before_forward(layer)
        step = self._forward_step(layer, "forward")
        self.stash_steps.after_forward(layer, step)

    def _forward_step(self, layer: Layer, pass_: Pass) -> StepBuilder:
        algorithms = self.plan.algorithms.get(layer.index)
        own = self.network.buffer_of(layer.index)
        reading = [owner for owner in self.network.input_buffers(layer.index) if owner != own]
        if pass_ == "recompute":
            self.stash_steps.before_reading(reading)
        if layer.kind == "input":
            step = self.builder.step(layer, pass_, 0)
        elif algorithms:
            selected = algorithms["forward"]
            time_ps = self._launched_ps("forward", selected.time_ps)
            step = self.builder.step(layer, pass_, time_ps, selected.workspace_bytes)
        else:
            temporary = self.network.temporary_bytes(layer.index, "forward")
            time_ps = self._launched_ps("forward", self._time_ps(layer, "forward"))
            step = self.builder.step(layer, pass_, time_ps, temporary)
        self.host_steps.reads_weights(layer, step)
        if layer.index == 1 and pass_ == "forward":
            self.host_steps.begin(step)
        for owner in reading:
            if pass_ == "recompute":
                self._read_again(step, owner)
            else:
                self._use(step, "y", owner)
        self._use(step, "y", own, defines=not layer.in_place, writes=True)
        if self._saved_bytes(layer):
            self._use(step, "saved", layer.index, defines=True)
        for name, byte_count in self.plan.offload_saved_tensors.get(layer.index, ()):
            duration = link_ps(self.link, "offload", byte_count)
            task = self.builder.task(
                step, "offload", layer.index, "after", byte_count, byte_count, duration, step.index, pins=byte_count
            )
            if name == "state":  # it is made by this step and lives on the host from then on
                self.builder.passes(step, task, "feature_maps")
        return step

    def _backward(self) -> None:
        firsts = {last: first for first, last in self.plan.segments}
        lasts = dict(self.plan.segments)
        for layer in reversed(self.layers[1:]):
            if layer.index in firsts:
                self._recompute(firsts[layer.index], layer.index)
            self._backward_pass(layer)
            if layer.index in lasts:
                self._hold_inputs(layer.index, lasts[layer.index])

    def _backward_pass(self, layer: Layer) -> None:
        """One step, or two: gradients of the weights, which reads X, then dX."""
        own, inputs = self.network.buffer_of(layer.index), self.network.input_buffers(layer.index)
        gradients = [owner for owner in inputs if self.network.has_gradient(owner)]
        saved = {self.network.buffer_of(producer) for producer in self.network.saved_inputs(layer.index)}
        reading = [owner for owner in inputs if owner in saved] if "x" in self._backward_reads(layer) else []
        if "y" in self._backward_reads(layer) and own not in reading:
            reading.append(own)
        self.stash_steps.before_reading(reading)
        if layer.index not in self.plan.separate_backward:
            passes = ("backward_filter", "backward_data") if gradients else ("backward_filter",)
            step = self._backward_step(layer, passes, "backward")
            self._reads(step, layer, reading)
            self.host_steps.reads_weights(layer, step)
            self.host_steps.gradient(layer, step)
            self._gradients(step, own, gradients)
            if self.network.recorded and layer.parameters:
                self._use(step, "dw", layer.index, defines=not self.accumulates, writes=True)
            return
        products = layer.index in self.plan.algorithms or (layer.gemms and all(gemm.weights for gemm in layer.gemms))
        if not products or not self._backward_reads(layer) <= {"x", "dy"} or self._saved_bytes(layer):
            raise ValueError(f"layer {layer.name!r}: backward pass in two steps: expected products with weights alone")
        step = self._backward_step(layer, ("backward_filter",), "backward_filter")
        self._reads(step, layer, reading)
        self._gradients(step, own, [])
        if gradients:
            self._gradients(self._backward_step(layer, ("backward_data",), "backward_data"), own, gradients)

    def _backward_step(self, layer: Layer, passes: tuple[str, ...], whole: str) -> StepBuilder:
        """A step of the backward pass: the algorithms of `passes` in turn, or the time of the pass `whole`."""
        selected = self.plan.algorithms.get(layer.index)
        if not selected:
            temporary = self.network.temporary_bytes(layer.index, "backward")
            if self.accumulates:  # the new gradient, which is added to the earlier one
                temporary += self.network.layer_parameter_bytes(layer.index)
            time_ps = self._launched_ps("backward", self._time_ps(layer, whole))
            return self.builder.step(layer, "backward", time_ps, temporary)
        algorithms = [selected[pass_] for pass_ in passes]
        workspace = max(algorithm.workspace_bytes for algorithm in algorithms)
        time_ps = self._launched_ps("backward", sum(algorithm.time_ps for algorithm in algorithms))
        return self.builder.step(layer, "backward", time_ps, workspace)

    def _reads(self, step: StepBuilder, layer: Layer, reading: list[int]) -> None:
        """Feature maps and saved state that the step reads, and the copies back for it alone."""
        for owner in reading:
            self._read_again(step, owner)
        if self._saved_bytes(layer):
            self._use(step, "saved", layer.index)
        for name, byte_count in self.plan.offload_saved_tensors.get(layer.index, ()):
            duration = link_ps(self.link, "prefetch", byte_count)
            task = self.builder.task(
                step, "prefetch", layer.index, "before", byte_count, byte_count, duration, step.index,
                unpins=byte_count,
            )  # fmt: skip
            self.builder.passes(step, task, "weights" if name == "weights" else "feature_maps")

    def _gradients(self, step: StepBuilder, own: int, gradients: list[int]) -> None:
        """Reads dY, and writes or adds to dX of other feature maps."""
        self._use(step, "dy", own, defines=own not in self.with_gradient)
        self.with_gradient.add(own)
        for owner in gradients:
            if owner != own:
                self._use(step, "dy", owner, defines=owner not in self.with_gradient, writes=True)
                self.with_gradient.add(owner)

    def _hold_inputs(self, first: int, last: int) -> None:
        """Retains a segment's inputs until its backward steps are over, as `torch.utils.checkpoint` does."""
        inside = self.layers[first : last + 1]
        for owner in dict.fromkeys(owner for layer in inside for owner in self.network.input_buffers(layer.index)):
            if owner < first:
                self._read_again(self.builder.steps[-1], owner)

    def _recompute(self, first: int, last: int) -> None:
        """Runs a segment forward again, up to the last layer whose output or saved state its backward steps read."""
        last_needed = first - 1
        for layer in self.layers[first : last + 1]:
            if "y" in self._backward_reads(layer) or self._saved_bytes(layer):
                last_needed = max(last_needed, layer.index)
            if "x" in self._backward_reads(layer):
                last_needed = max(last_needed, *layer.inputs)
        for layer in self.layers[first : min(last_needed, last) + 1]:
            self._forward_step(layer, "recompute")

    def _update(self) -> None:
        """Updates the weights of every layer, once all gradients are computed."""
        if self.optimizer is None:
            return
        if self.host_steps.updates:
            self.host_steps.finish(self.builder.step(self.layers[0], "update", 0))
            return
        if isinstance(self.network, RecordedNetwork):
            self._recorded_update(self.network)
            return
        # An update's kernel reaches the bandwidth of an activation's.
        bytes_per_s = self.cost.machine.dram_bytes_per_s * self.cost.bandwidth_fraction("relu", "forward")
        for index, tensors in self.weights.items():
            layer = self.layers[index]
            step = self.builder.step(layer, "update", self.optimizer.update_ps(layer.parameters, bytes_per_s))
            step.reads += tensors
            step.writes += [tensor for tensor in tensors if self.builder.tensors[tensor].kind != "weight_gradients"]

    def _recorded_update(self, network: RecordedNetwork) -> None:
        """Updates all weights in one step, as recorded: its temporaries live next to every gradient."""
        recorded = network.update()
        time_ps = self.cost.operations_ps(recorded.work)
        step = self.builder.step(self.layers[0], "update", time_ps)
        weights = max(1, network.parameter_bytes())
        for index, tensors in self.weights.items():
            self._use(step, "dw", index)
            temporary = recorded.temporary_bytes * network.layer_parameter_bytes(index) // weights
            if temporary:  # of each weight its own, as those of foreach
                self.builder.use(step, "update", self.layers[index], temporary, defines=True)
            step.reads += tensors
            step.writes += tensors

    def _network_wide(self) -> None:
        """Allocates all tensors throughout; gradient maps and workspace are shared (vDNN, Section II-C and Fig. 2)."""
        if self.plan.stash:
            raise ValueError("a network-wide allocation stores every feature map: expected no stash")
        for owner in self.network.feature_maps:
            self.builder.keep(self.layers[owner], "feature_maps", self.map_bytes[owner])
        for layer in self.layers:
            if self._saved_bytes(layer):
                self.builder.keep(layer, "feature_maps", self._saved_bytes(layer))
        largest = max(self.layers[1:], key=lambda layer: layer.output_elements)
        for _ in range(2):
            self.builder.keep(largest, "gradient_maps", self.map_bytes[largest.index])
        hungriest = max(self.builder.steps, key=lambda step: step.workspace_bytes)
        if hungriest.workspace_bytes:
            self.builder.keep(self.layers[hungriest.layer], "workspace", hungriest.workspace_bytes)
