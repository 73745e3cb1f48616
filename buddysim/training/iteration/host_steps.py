"""What the host does for a network that isn't recorded anew: tasks next to the steps of its layers.

Weight gradients are copied to the host behind a layer's backward step, the host updates the layer's weights, and these
are copied to the GPU, or stay on the host and are fetched for each step that reads them: with the step of an earlier
layer that has weights, or before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.records import HostTask
from buddysim.training.cost.host_rates import HostRates
from buddysim.training.iteration.plan import Plan
from buddysim.training.iteration.program import CopyTiming, Pass, Stream
from buddysim.training.iteration.program_builder import ProgramBuilder, StepBuilder
from buddysim.training.iteration.stash_steps import link_ps
from buddysim.training.networks.graph import Layer
from buddysim.training.optimizers import Optimizer

if TYPE_CHECKING:
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.cost import CostModel

#: `until` of a task until the last step is known.
_AT_END = -1


@dataclass
class HostSteps:
    """The host's tasks of one program.

    Attributes
    ----------
    host_bytes : of host memory that weights, gradients and optimizer state take throughout
    gradients : task that copies a layer's weight gradients, by layer, in the order of the backward pass
    """

    plan: Plan
    link: HostLinkConfig
    cost: CostModel
    builder: ProgramBuilder
    optimizer: Optimizer | None
    host_bytes: int = 0
    gradients: dict[int, int] = field(default_factory=dict)
    _layers: dict[int, tuple[Layer, int]] = field(default_factory=dict)
    _updated: dict[int, int] = field(default_factory=dict)
    _reading: dict[Pass, list[tuple[Layer, StepBuilder]]] = field(default_factory=dict)

    @cached_property
    def rates(self) -> HostRates:
        """Of the machine's host."""
        return HostRates.of(self.cost.machine)

    @property
    def updates(self) -> bool:
        """Whether the host updates the weights."""
        return self.plan.host_optimizer is not None and self.optimizer is not None

    @property
    def has_weights(self) -> bool:
        """Whether weights lie on the host."""
        return self.updates and self.plan.host_weights is not None

    def adopt(self, layer: Layer, weight_bytes: int) -> None:
        """Reserve host memory for a layer's weights, gradients and state."""
        rule, optimizer = self.plan.host_optimizer, self.optimizer
        assert rule is not None
        assert optimizer is not None
        state = optimizer.state_bytes(layer.parameters)
        self._layers[layer.index] = layer, weight_bytes
        self.host_bytes += weight_bytes * (2 if rule.delayed else 1) + weight_bytes
        self.host_bytes += state if rule.device == "host" else 0

    def reads_weights(self, layer: Layer, step: StepBuilder) -> None:
        """Note a step that reads a layer's weights."""
        if self.has_weights and layer.index in self._layers:
            self._reading.setdefault(step.pass_, []).append((layer, step))

    def add_fetches(self) -> None:
        """Fetch weights for the steps that read them, once all steps exist; none ahead of its pass."""
        weights = self.plan.host_weights
        for reading in self._reading.values():
            assert weights is not None
            for number, (layer, step) in enumerate(reading):
                _, launching = reading[max(0, number - weights.ahead)]
                self._fetch(layer, launching, step, on_drives=weights.device == "nvme")

    def _fetch(self, layer: Layer, launching: StepBuilder, step: StepBuilder, *, on_drives: bool) -> None:
        """Fetch a layer's weights for a step, from the start of an earlier one on."""
        size = self._layers[layer.index][1]
        timing: CopyTiming = "before" if launching is step else "overlapped"
        until = step.index if launching is step else step.index - 1
        after: tuple[int, ...] = ()
        if on_drives:
            after = (self._host(launching, layer, HostTask("nvme_read", size), (), timing, until),)
        duration = link_ps(self.link, "prefetch", size)
        task = self.builder.task(launching, "prefetch", layer.index, timing, size, size, duration, until, after=after)
        self.builder.use(launching, "w", layer, size, defines=True)
        self.builder.use(step, "w", layer, size)
        self.builder.copies(launching, "w", layer.index, task)

    def gradient(self, layer: Layer, step: StepBuilder) -> None:
        """Copy a layer's weight gradients behind a step, the first one that has them; then update, if one by one."""
        rule = self.plan.host_optimizer
        if rule is None or not self.updates or layer.index not in self._layers:
            return
        size = self._layers[layer.index][1]
        duration = link_ps(self.link, "offload", size)
        arrived = self.builder.task(step, "offload", layer.index, "after", size, size, duration, _AT_END)
        self.gradients[layer.index] = arrived
        if rule.library == "torchao" and not rule.delayed:
            self._updated[layer.index] = self._update(step, layer, (arrived,))

    def begin(self, step: StepBuilder) -> None:
        """Begin the update of the iteration before, where it is delayed."""
        rule = self.plan.host_optimizer
        if rule is not None and self.updates and rule.delayed:
            for layer, _ in self._layers.values():
                self._updated[layer.index] = self._update(step, layer, ())

    def finish(self, step: StepBuilder) -> None:
        """Update what isn't updated yet, and copy weights to the GPU; the end of the step waits for all."""
        arrived = tuple(self.gradients.values())
        for index in self.gradients:
            if index not in self._updated:
                self._updated[index] = self._update(step, self._layers[index][0], arrived)
        rule, ends = self.plan.host_optimizer, tuple(self._updated.values())
        assert rule is not None
        for index in () if self.has_weights else self.gradients:
            size = self._layers[index][1]
            after = (self._updated[index],) if rule.library == "torchao" else ends
            duration = link_ps(self.link, "prefetch", size)
            self.builder.task(step, "prefetch", index, "after", size, size, duration, _AT_END, after=after)
        for number, task in enumerate(self.builder.tasks):
            if task.until == _AT_END:
                self.builder.tasks[number] = task._replace(until=step.index)

    def _update(self, step: StepBuilder, layer: Layer, after: tuple[int, ...]) -> int:
        rule, optimizer = self.plan.host_optimizer, self.optimizer
        assert rule is not None
        assert optimizer is not None
        needed = rule.update(optimizer, (layer.parameters,), float32, False, not self.has_weights)
        if rule.device == "nvme":
            after = (*after, self._host(step, layer, HostTask("nvme_read", needed.state), ()))
        updated = self._host(step, layer, HostTask("update", needed.moved), after)
        if rule.device == "nvme":
            self._host(step, layer, HostTask("nvme_write", needed.state), (updated,))
        return updated

    def _host(
        self, step: StepBuilder, layer: Layer, task: HostTask, after: tuple[int, ...],
        timing: CopyTiming = "after", until: int = _AT_END,
    ) -> int:  # fmt: skip
        duration = self.rates.task_ps(task)
        stream: Stream = "host" if task.kind == "update" else "nvme"
        return self.builder.task(step, stream, layer.index, timing, 0, 0, duration, until, after=after)
