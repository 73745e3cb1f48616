"""The host updates weights: gradients go down, and weights come up.

torchao (``torchao/optim/cpu_offload.py``, `CPUOffloadOptimizer`)
    Behind each weight's gradient its copy is queued on one stream, which waits for the computations so far; the
    gradient's memory is given back when the copy is done (``record_stream``): here, with the next gradient. In
    ``step()`` the host waits for a gradient, updates the weight with PyTorch's fused AdamW, queues its copy to the GPU
    on the same stream, and goes on with the next one, in the order in which the gradients came. Weights of less than
    4096 elements stay the GPU's.
DeepSpeed (``deepspeed/runtime/zero/stage_1_and_2.py``, ``cpu_offload`` without ``overlap_comm``)
    Gradients are copied into a bucket of 5 10^8 elements. A full one is emptied weight by weight: each is converted to
    single precision, and copied to the host on the stream that computes. ``step()`` updates all weights on the host,
    copies them as they are, in single precision, into one tensor on the GPU, and from there into the weights.

On NVMe drives, the state of a weight is read before its update, while the one before is updated, and written behind it
(DeepSpeed's ``PipelinedOptimizerSwapper``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.records import Direction, HostBuffer, HostCopy, HostTask
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.optimizer_offload import HostUpdate, OptimizerOffload
from buddysim.training.step.gradient_hooks import GradientHooks
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.autograd.module import Parameter
    from buddysim.training.autograd.tape import Tape
    from buddysim.training.step.training_step import TrainingStep

BUCKET_ELEMENTS = 5 * 10**8
"""DeepSpeed's ``reduce_bucket_size``."""


class HostOptimizer(StepPart):
    """The host's updates in a step.

    Parameters
    ----------
    masters : the recipe has weights in single precision
    back : weights go back to the GPU behind their update; False: they are the host's

    Attributes
    ----------
    gradients : number of the buffer and index of the copy's operation, by weight, in the order of their copies
    """

    def __init__(self, rule: OptimizerOffload, masters: bool, back: bool = True) -> None:
        self.rule, self.masters, self.back = rule, masters, back
        self.weights: list[Parameter] = []
        self.updates: dict[int, HostUpdate] = {}
        self.gradients: dict[int, tuple[Parameter, int]] = {}
        self.last_copy: int | None = None
        self.in_flight: Tensor | None = None
        self.bucket: Tensor | None = None
        self.pending: list[Parameter] = []
        self.filled = 0
        self.is_last = True

    def model_built(self, step: TrainingStep) -> None:
        """Refuse what needs gradients on the GPU.

        Raises
        ------
        BuddysimError
            an option or a recipe that does
        """
        options = step.options
        for name, is_set in (
            ("optimizer_in_backward", options.optimizer_in_backward),
            ("several GPUs", options.sharding is not None),
        ):
            if is_set:
                raise BuddysimError(f"optimizer on the host: {name} isn't simulated with it: expected neither or one")

    def optimized(self, step: TrainingStep, parameters: Sequence[Parameter]) -> Sequence[Parameter]:
        """Take the weights from the GPU's optimizer, but for small ones."""
        smallest = self.rule.smallest() if self.back else 0
        self.weights = [one for one in parameters if one.numel() >= smallest]
        hooks = GradientHooks(step)
        for one in self.weights:
            hooks.add(one, self._arrived)
        return [one for one in parameters if one.numel() < smallest]

    def optimizer_made(self, step: TrainingStep) -> None:
        """Reserve host memory.

        Raises
        ------
        BuddysimError
            no optimizer
        """
        optimizer = step.optimizer.optimizer
        if optimizer is None:
            raise BuddysimError("optimizer on the host: no optimizer runs: expected one (--optimizer)")
        for one in self.weights:
            update = optimizer_update = self.rule.update(optimizer, one.shape, one.dtype, self.masters, self.back)
            self.updates[id(one)] = optimizer_update
            step.tape.host_bytes += update.gradient * (2 if self.rule.delayed else 1)
            if self.rule.device == "host":
                step.tape.host_bytes += update.state
        if self.rule.device == "nvme":  # read, updated and written at once
            step.tape.host_bytes += 3 * max((one.state for one in self.updates.values()), default=0)

    @contextmanager
    def forward(self, step: TrainingStep) -> Iterator[None]:
        """Begin with the update of the iteration before, where that is delayed."""
        if self.rule.delayed and not step.micro_step:
            self.delayed = self._update_all(step.tape, {})
        yield

    @contextmanager
    def backward(self, step: TrainingStep) -> Iterator[None]:
        """Copy the gradients of the last micro-step, which are complete."""
        self.is_last = step.last_micro_step
        if self.is_last:
            step.tape.after_backward.append(self._finish)
        yield

    @contextmanager
    def update(self, step: TrainingStep) -> Iterator[None]:
        """Update on the host, behind the small weights on the GPU."""
        yield
        tape = step.tape
        if self.rule.delayed:
            tasks = self.delayed
            self._weights_back(tape, self.weights, tasks)
            return
        arrived = {number: copied for number, (_, copied) in self.gradients.items()}
        weights = [weight for weight, _ in self.gradients.values()]
        if self.rule.library == "deepspeed":
            last = max(arrived.values(), default=None)
            tasks = self._update_all(tape, {} if last is None else dict.fromkeys(arrived, last), weights)
            self._weights_back(tape, weights, tasks)
        else:
            self._update_all(tape, arrived, weights, one_by_one=self.back)
        self.gradients.clear()

    # Gradients.

    def _arrived(self, weight: Tensor) -> None:
        if not self.is_last:
            return
        if self.rule.library == "torchao":
            self.in_flight = weight.grad
            self._copy_gradient(weight, weight.grad, stream=True)  # type: ignore[arg-type]
            if not self.rule.keep_gradients:
                weight.grad = None
            return
        self._into_bucket(weight)  # type: ignore[arg-type]

    def _copy_gradient(self, weight: Parameter, gradient: Tensor | None, *, stream: bool) -> None:
        assert gradient is not None
        tape = gradient.tape
        buffer = _buffer(tape, gradient.numel() * gradient.dtype.size)
        copied = self._copy(tape, "offload", gradient, buffer, tape.last_computation(), stream=stream)
        self.gradients[id(weight)] = weight, copied

    def _copy(
        self, tape: Tape, direction: Direction, tensor: Tensor, buffer: int, after: tuple[int, ...], *, stream: bool
    ) -> int:
        """Record a copy, on the one stream of copies or between the computations; return its operation's index."""
        copy = HostCopy(direction, tensor.numel() * tensor.dtype.size, buffer)
        reads, writes = ((tensor,), ()) if direction == "offload" else ((), (tensor,))
        if not stream:
            tape.launch(direction, reads, writes, copy=copy, after=after)
            return len(tape.operations) - 1
        if self.last_copy is not None:
            after = (*after, self.last_copy)
        tape.launch(direction, reads, writes, stream=direction, copy=copy, after=after)
        self.last_copy = len(tape.operations) - 1
        return self.last_copy

    def _into_bucket(self, weight: Parameter) -> None:
        gradient = weight.grad
        assert gradient is not None
        tape = gradient.tape
        if self.bucket is None:
            self.bucket = tape.empty((BUCKET_ELEMENTS,), gradient.dtype, "empty", kind="bucket")
        if self.filled + gradient.numel() > BUCKET_ELEMENTS:
            self._empty_bucket()
        if gradient.numel() <= BUCKET_ELEMENTS:
            part = Tensor(gradient.shape, gradient.strides, self.filled, gradient.dtype, self.bucket.storage, "narrow")
            tape.launch("copy_", (gradient,), (part,))
            weight.grad = part
            del part
        del gradient
        self.filled += weight.numel()
        self.pending.append(weight)

    def _empty_bucket(self) -> None:
        for weight in self.pending:
            gradient = weight.grad
            assert gradient is not None
            single = gradient
            if gradient.dtype is not float32:
                single = gradient.tape.empty(gradient.shape, float32, "_to_copy", kind="gradient")
                gradient.tape.launch("_to_copy", (gradient,), (single,))
            self._copy_gradient(weight, single, stream=False)
            weight.grad = None
            del gradient, single
        self.pending, self.filled = [], 0

    def _finish(self) -> None:
        self._empty_bucket()
        self.bucket = self.in_flight = None

    # Updates.

    def _update_all(
        self,
        tape: Tape,
        arrived: dict[int, int],
        weights: Sequence[Parameter] | None = None,
        *,
        one_by_one: bool = False,
    ) -> list[int]:
        """Update weights in order; return the operations of the updates.

        Parameters
        ----------
        arrived : copy of a weight's gradient, which its update waits for
        one_by_one : a weight goes back behind its update
        """
        weights = self.weights if weights is None else weights
        done: list[int] = []
        reading: dict[int, int] = {}
        for position, weight in enumerate(weights):
            if self.rule.device == "nvme":
                for ahead in weights[position : position + 2]:
                    if id(ahead) not in reading:
                        read = HostTask("nvme_read", self.updates[id(ahead)].state)
                        reading[id(ahead)] = _launched(tape, "nvme_read", "nvme", read, tuple(done[-2:-1]))
            after = [one[id(weight)] for one in (arrived, reading) if id(weight) in one]
            task = HostTask("update", self.updates[id(weight)].moved)
            done.append(_launched(tape, "host_update", "host", task, tuple(after)))
            if self.rule.device == "nvme":
                written = HostTask("nvme_write", self.updates[id(weight)].state)
                _launched(tape, "nvme_write", "nvme", written, (done[-1],))
            if one_by_one:
                buffer = _buffer(tape, self.updates[id(weight)].result)
                self._copy(tape, "prefetch", weight, buffer, (*tape.last_computation(), done[-1]), stream=True)
        return done

    def _weights_back(self, tape: Tape, weights: Sequence[Parameter], tasks: Sequence[int]) -> None:
        """Copy all weights to the GPU, once all are updated."""
        if not self.back or not weights:
            return
        tape.launch("wait", (), (), after=tuple(tasks))
        if self.rule.library == "torchao":
            for weight in weights:
                buffer = _buffer(tape, self.updates[id(weight)].result)
                self._copy(tape, "prefetch", weight, buffer, tape.last_computation(), stream=True)
            return
        whole = tape.empty((sum(one.numel() for one in weights),), float32, "_to_copy", kind="master")
        buffer = _buffer(tape, whole.numel() * float32.size)
        self._copy(tape, "prefetch", whole, buffer, (), stream=False)
        tape.launch("copy_", (whole,), weights)


def _buffer(tape: Tape, size: int) -> int:
    """A buffer that the host has throughout: its memory is counted in `Tape.host_bytes`."""
    tape.host_buffers.append(HostBuffer(size, 0, lasts=True))
    return len(tape.host_buffers) - 1


def _launched(tape: Tape, name: str, stream: str, task: HostTask, after: tuple[int, ...]) -> int:
    tape.launch(name, (), (), stream=stream, task=task, after=after)  # type: ignore[arg-type]
    return len(tape.operations) - 1
