"""The program of a recorded step as PyTorch runs it: a step for each operation, allocations and frees in their order.

Where an allocation precedes a free between two operations, both lie in a step of no operation and no time. So the bytes
allocated in each step are those that live, and the peak is the record's to the byte. Operations of other streams are
tasks (`recorded_tasks`).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from buddysim.training.autograd.records import AllocationEvent, FreeEvent, StorageRecord, TracedOperation
from buddysim.training.cost.operators.host import LaunchQueue, entries_of
from buddysim.training.iteration.program import Pass, Program, ProgramTensor, Step, copy_ps
from buddysim.training.iteration.recorded_kinds import kinds_of_storages
from buddysim.training.iteration.recorded_tasks import RecordedTasks
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.recorded.work import OperationWork, work_of

if TYPE_CHECKING:
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.cost import CostModel
    from buddysim.training.cost.host_rates import HostRates

_PASSES: dict[str, Pass] = {
    "forward": "forward",
    "recompute": "recompute",
    "backward": "backward",
    "optimizer": "update",
}


def recorded_program(
    network: RecordedNetwork, cost: CostModel, link: HostLinkConfig, host: HostRates, time_factor: float = 1.0
) -> Program:
    """Return the program of a recorded network, on a link and a host with these rates.

    Parameters
    ----------
    time_factor : of kernels; launches, copies and collectives take as long as ever
    """
    return _ProgramOfRecord(network, cost, link, host, time_factor).program()


class _Draft:
    """A step while its tensors are added: layer, pass, time, tensors to allocate and to release."""

    __slots__ = ("allocate", "compute_ps", "layer", "pass_", "release")

    def __init__(self, layer: int, pass_: Pass, compute_ps: int, allocate: tuple[int, ...]) -> None:
        self.layer, self.pass_, self.compute_ps, self.allocate = layer, pass_, compute_ps, allocate
        self.release: list[int] = []


class _ProgramOfRecord:
    def __init__(
        self, network: RecordedNetwork, cost: CostModel, link: HostLinkConfig, host: HostRates, time_factor: float
    ) -> None:
        self.network, self.cost, self.time_factor = network, cost, time_factor
        self.link, self.host, self.tasks = link, host, RecordedTasks(network.tape)
        self.layer_of = {one.index: run.index + 1 for run in network.runs for one in run.operations}
        self.kinds = kinds_of_storages(network.tape)
        self.tensors: list[ProgramTensor] = []
        self.number: dict[int, int] = {}  # of the tensor of a storage
        self.resident: list[int] = []
        self.allocated: list[int] = []  # since the last step
        self.steps: list[_Draft] = []
        self.queue = LaunchQueue()
        self.ends: list[int] = []  # of the steps on the GPU, without waits

    def program(self) -> Program:
        storages = self.network.tape.storages
        for event in self.network.tape.events:
            if isinstance(event, AllocationEvent):
                record = storages[event.storage]
                tensor = self._tensor(record)
                (self.resident if record.phase == "setup" else self.allocated).append(tensor)
            elif isinstance(event, FreeEvent):
                self._free(self.number[event.storage])
            elif event.phase != "setup":
                self._operation(event)
        if self.allocated or not self.steps:
            self._step(0, "update", 0)
        layers = self.network.layers
        launched: dict[int, list[int]] = {}
        for number, task in enumerate(self.tasks.tasks):
            launched.setdefault(task.launch, []).append(number)
        steps = (
            Step(index, one.layer, one.pass_, one.compute_ps, layers[one.layer].part, 0,
                 tuple(launched.get(index, ())), one.allocate, tuple(one.release))
            for index, one in enumerate(self.steps)
        )  # fmt: skip
        tasks = tuple(self.tasks.queued(len(self.steps)))
        return Program(
            tuple(steps), tuple(self.tensors), tasks, tuple(self.resident), host_bytes=self.network.tape.host_bytes
        )

    def _tensor(self, record: StorageRecord) -> int:
        number = len(self.tensors)
        self.tensors.append(ProgramTensor(number, 0, self.kinds[record.number], record.bytes, "features"))
        self.number[record.number] = number
        return number

    def _operation(self, operation: TracedOperation) -> None:
        last = self.steps[-1].layer if self.steps else 0
        layer = self.layer_of.get(operation.index, last)
        if operation.name == "wait":
            self._first_step(layer, operation)
            self.tasks.waits(operation, len(self.steps) - 1)
            return
        work, times = work_of(operation, self.network.tape.compiled), operation.times
        if operation.stream != "compute" or operation.copy is not None or operation.collective is not None:
            self._first_step(layer, operation)
            if operation.stream == "offload":
                self.queue.record_event()
            if operation.copy is not None and operation.copy.blocking:
                self.queue.wait()
            last = len(self.steps) - 1
            free = min(bisect_left(self.ends, self.queue.host_ps), last)
            spent, blocking = self._task_ps(operation, work), operation.stream == "compute"
            self.tasks.add(operation, layer, last, spent, blocking=blocking, host_free=free)
            return
        self.tasks.computes(operation, len(self.steps))
        spent = self.queue.launch(
            times * self.cost.launch_ps(work),
            times * self._kernel_ps(work),
            times * entries_of(operation),
        )
        self._step(layer, _PASSES[operation.phase], spent)

    def _task_ps(self, operation: TracedOperation, work: OperationWork) -> int:
        """Time of an operation of another stream: a copy, the host's work, a collective or a kernel next to it."""
        copy, link = operation.copy, self.link
        if operation.task is not None:
            return self.host.task_ps(operation.task)
        if copy is not None:
            rate = link.offload_bytes_per_s if copy.direction == "offload" else link.prefetch_bytes_per_s
            return copy_ps(copy.bytes, rate, link.latency_ps)
        if operation.collective is not None:
            return self.cost.collective_ps(operation.collective)
        return self._kernel_ps(work)

    def _kernel_ps(self, work: OperationWork) -> int:
        spent = self.cost.operation_ps(work)
        return spent if self.time_factor == 1 else round(spent * self.time_factor)

    def _first_step(self, layer: int, operation: TracedOperation) -> None:
        """Make a step of no time where none is there to launch a task or to wait."""
        if not self.steps:
            self._step(layer, _PASSES[operation.phase], 0)

    def _step(self, layer: int, pass_: Pass, compute_ps: int) -> None:
        self.steps.append(_Draft(layer, pass_, compute_ps, tuple(self.allocated)))
        self.allocated = []
        self.ends.append(self.queue.gpu_ps)

    def _free(self, tensor: int) -> None:
        """Release a tensor at the end of the last step, after what was allocated since."""
        if self.allocated or not self.steps:
            last = self.steps[-1] if self.steps else None
            self._step(last.layer if last else 0, last.pass_ if last else "forward", 0)
        self.steps[-1].release.append(tensor)
