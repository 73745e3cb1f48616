"""ZeRO 3: weights, gradients and optimizer state are divided; each module's own weights are gathered when it runs.

DeepSpeed 0.18, ``runtime/zero``: ``stage3.py``, ``parameter_offload.py``, ``partitioned_param_coordinator.py``, with
its defaults. The first GPU is simulated, in an iteration whose order of modules is known from the one before.

weights
    Each weight, as a sequence, is divided into equal parts. Those of at most 1e5 elements are gathered once and stay.
    Before a module with weights of its own runs, those that aren't there are gathered, and then up to 5e7 elements that
    are needed next, where at most 1e9 elements are there in all. Several weights are gathered into one buffer, out of
    which they are copied when the first of them is needed. Behind a module its weights are given back, unless they are
    needed again within 1e9 elements, or were gathered for that already.
gradients
    are copied to a bucket of 5e8 elements that is always there. When the next one doesn't fit, all are reduced and
    scattered by way of another buffer, and this GPU's parts are copied to a tensor that is always there.
update
    Parts of at most 1e9 elements are updated one after the other: gradients cast, copies in fp32 where the recipe has
    masters updated and cast back. At the end the weights that stay are gathered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from buddysim.training.autograd.arguments import behind, replaced, with_gradient
from buddysim.training.autograd.dtypes import float32, int64
from buddysim.training.autograd.module import Module, ModuleHooks, Parameter
from buddysim.training.autograd.records import Collective
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.quantized.nf4 import QuantizedWeight
from buddysim.training.sharding.partitioned import BUCKET_ELEMENTS
from buddysim.training.sharding.shard import ShardedParameter, owners_of
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.step.training_step import TrainingStep

#: ``stage3_param_persistence_threshold``, ``stage3_prefetch_bucket_size``, ``stage3_max_live_parameters``,
#: ``stage3_max_reuse_distance``, ``sub_group_size``; all in elements.
PERSISTENT = 100_000
PREFETCH = 50_000_000
MAX_LIVE = 1_000_000_000
REUSE_DISTANCE = 1_000_000_000
SUB_GROUP = 1_000_000_000


class PartitionedWeights(StepPart):
    """DeepSpeed's optimizer of stage 3.

    Parameters
    ----------
    masters : whether this GPU's parts are updated in fp32
    bucket_bytes : of the bucket of gradients; None: `BUCKET_ELEMENTS`

    Attributes
    ----------
    order : modules in the order of an iteration: those of the forward pass, and the same the other way round
    position : of the next module in it
    queue : weights that may be gathered ahead, with the positions in the order at which they are needed
    ahead : the last position that a weight was taken from the queue for
    live : elements that are there
    filled, pending : elements and weights in the bucket
    """

    def __init__(self, gpus: int, *, masters: bool, bucket_bytes: int | None) -> None:
        self.gpus, self.masters, self.bucket_bytes = gpus, masters, bucket_bytes
        self.weights: list[GatheredWeight] = []
        self.order: list[_OwnWeights] = []
        self.position = 0
        self.queue: deque[tuple[GatheredWeight, int]] = deque()
        self.ahead: dict[int, int] = {}
        self.live = 0
        self.filled = 0
        self.pending: list[GatheredWeight] = []
        self.parts: list[Parameter] = []

    # Setup.

    def model_built(self, step: TrainingStep) -> None:
        tape, model = step.tape, step.model
        model.name_scopes()
        owners = owners_of(model)
        originals = model.parameters()
        of_weight = {}
        for one in originals:
            sharded = GatheredWeight(tape, one, owners[id(one)], self.gpus, one.dtype, one.dtype, is_flat=True)
            of_weight[id(sharded.shard)] = sharded
            self.weights.append(sharded)
        modules = []
        for _, module in model.named_modules():
            own = [] if isinstance(module, QuantizedWeight) else list(_own_weights(module))
            if own:
                modules.append(_OwnWeights(self, module, [of_weight[id(one)] for one in own]))
        self._find_order(step, modules)
        for weight in self.weights:
            weight.stays = weight.is_available = weight.full.numel() <= PERSISTENT
            if weight.stays:
                weight.full.storage.restore()
                weight.show(weight.full)
            else:
                weight.show(weight.shard)
        for own_weights in modules:
            own_weights.module.add_hooks(own_weights)
        trained = [one for one in self.weights if one.full.requires_grad]
        dtype = trained[0].full.dtype
        self.bucket_elements = self.bucket_bytes // dtype.size if self.bucket_bytes else BUCKET_ELEMENTS
        self.bucket = tape.empty((self.bucket_elements,), dtype, "empty", kind="bucket", label="gradient bucket")
        elements = sum(one.part_elements for one in trained)
        self.gradients = tape.empty((elements,), dtype, "zeros", kind="gradient", label="this GPU's gradients")
        for weight in trained:
            weight.full.after_accumulate = partial(self._take, weight)

    def _find_order(self, step: TrainingStep, modules: list[_OwnWeights]) -> None:
        """Run a forward pass that leaves no record, with the weights there."""
        tape = step.tape
        forward: list[_OwnWeights] = []
        operations, saved = len(tape.operations), len(tape.saved)
        recorders = [_UseRecorder(one, forward) for one in modules]
        for one in self.weights:
            one.full.storage.restore()
            one.show(one.full)
        hooks = [one.module._hooks for one in modules]
        for recorder in recorders:
            recorder.of.module.add_hooks(recorder)
        inputs = {
            name: tape.empty(one.shape, int64 if one.dtype == "int64" else tape.default_dtype, name)
            for name, one in step.model.input_shapes(1).items()
        }
        step.model(**inputs)
        del inputs
        for module, before in zip(modules, hooks, strict=True):
            module.module._hooks = before
        for one in self.weights:
            one.full.storage.release()
        del tape.operations[operations:], tape.saved[saved:]
        self.order = [*forward, *reversed(forward)]

    def optimized(self, step: TrainingStep, parameters: Sequence[Parameter]) -> Sequence[Parameter]:
        trained = [one for one in self.weights if one.full.requires_grad]
        dtype = float32 if self.masters else trained[0].full.dtype
        left = sum(one.part_elements for one in trained)
        while left:
            self.parts.append(Parameter((min(left, SUB_GROUP),), dtype))
            self.parts[-1].storage.record.kind = "master"
            left -= min(left, SUB_GROUP)
        return self.parts

    # Weights.

    @contextmanager
    def forward(self, step: TrainingStep) -> Iterator[None]:
        self.position = 0
        self.queue = deque((weight, position) for position, one in enumerate(self.order) for weight in one.weights)
        self.ahead = {}
        yield

    def fetch(self, module: _OwnWeights) -> None:
        """Make a module's weights available, and gather those that come next."""
        position = self.position
        missing = [one for one in module.weights if not one.is_available and one.flight is None]
        if missing:
            self._gather(missing)
        for one in module.weights:
            if one.flight is not None:
                one.flight.land()
        while self.queue and self.queue[0][1] <= position:
            weight, needed = self.queue.popleft()
            self.ahead[id(weight)] = needed
        most, taken, elements = min(MAX_LIVE - self.live, PREFETCH), [], 0
        while self.queue and elements < most:
            weight, needed = self.queue.popleft()
            self.ahead[id(weight)] = max(needed, self.ahead.get(id(weight), 0))
            if not weight.is_available and weight.flight is None and weight not in taken:
                taken.append(weight)
                elements += weight.full.numel()
        if taken:
            self._gather(taken)
        self.position += 1

    def _gather(self, weights: list[GatheredWeight]) -> None:
        """Gather weights, those of each number format together."""
        self.live += sum(one.full.numel() for one in weights)
        for dtype in dict.fromkeys(one.full.dtype for one in weights):
            alike = [one for one in weights if one.full.dtype is dtype]
            flight = _Flight(alike, self.gpus)
            for one in alike:
                one.flight = flight

    def release(self, module: _OwnWeights) -> None:
        """Give back what isn't needed soon."""
        soon: set[int] = set()
        elements = 0
        for one in self.order[self.position :]:
            if elements >= REUSE_DISTANCE:
                break
            for weight in one.weights:
                soon.add(id(weight))
                elements += weight.full.numel()
        for weight in module.weights:
            if not weight.stays and id(weight) not in soon and self.ahead.get(id(weight), 0) <= self.position:
                self._give_back(weight)

    def _give_back(self, weight: GatheredWeight) -> None:
        if weight.is_available and not weight.stays:
            weight.show(weight.shard)
            weight.full.storage.release()
            weight.is_available = False
            self.live -= weight.full.numel()

    # Gradients.

    @contextmanager
    def backward(self, step: TrainingStep) -> Iterator[None]:
        step.tape.after_backward.append(self._finish)
        yield

    def _take(self, weight: GatheredWeight, _: Tensor) -> None:
        """Copy a gradient into the bucket; one that is larger is reduced from where it is."""
        gradient, tape = weight.full.grad, active_tape()
        assert gradient is not None
        if self.filled + gradient.numel() > self.bucket_elements:
            self._reduce()
        if gradient.numel() <= self.bucket_elements:
            part = Tensor(gradient.shape, gradient.strides, self.filled, gradient.dtype, self.bucket.storage, "narrow")
            tape.launch("copy_", (gradient,), (part,))
            weight.full.grad = part
        self.filled += gradient.numel()
        self.pending.append(weight)

    def _reduce(self) -> None:
        if not self.pending:
            return
        tape = active_tape()
        elements = sum(one.padded_elements for one in self.pending)
        dtype = self.gradients.dtype
        flat = tape.empty((elements,), dtype, "cat", kind="bucket")
        tape.launch("cat", [one.full.grad for one in self.pending if one.full.grad is not None], (flat,))
        own = Tensor((elements // self.gpus,), (1,), 0, dtype, flat.storage, "narrow")
        collective = Collective("reduce_scatter", elements * dtype.size, self.gpus)
        tape.launch("reduce_scatter", (flat,), (own,), stream="reduce", collective=collective)
        part = Tensor(own.shape, (1,), 0, dtype, self.gradients.storage, "narrow")
        tape.launch("copy_", (own,), (part,), stream="reduce")
        for one in self.pending:
            one.full.grad = None
        self.pending, self.filled = [], 0

    def _finish(self) -> None:
        self._reduce()
        for weight in self.weights:
            if weight.flight is not None:
                weight.flight.land()
            self._give_back(weight)

    # Update.

    @contextmanager
    def update(self, step: TrainingStep) -> Iterator[None]:
        """Update part after part, the last one by the caller; then gather the weights that stay."""
        tape, begin = step.tape, 0
        for part in self.parts:
            gradient = Tensor(part.shape, (1,), begin, self.gradients.dtype, self.gradients.storage, "narrow")
            begin += part.numel()
            if gradient.dtype is not part.dtype:
                cast = tape.empty(part.shape, part.dtype, "_to_copy", kind="gradient")
                tape.launch("_to_copy", (gradient,), (cast,))
                gradient = cast
                del cast
            part.grad = gradient
            del gradient
            if part is self.parts[-1]:
                yield
            else:
                step.optimizer.step()
            part.grad = None
        trained = [one for one in self.weights if one.full.requires_grad]
        tape.launch("copy_", self.parts, [one.shard for one in trained])
        staying = [one for one in self.weights if one.stays]
        if staying:
            size = sum(one.padded_elements * one.full.dtype.size for one in staying)
            collective = Collective("all_gather", size, self.gpus)
            tape.launch(
                "all_gather", [one.shard for one in staying], [one.full for one in staying], collective=collective
            )


class GatheredWeight(ShardedParameter):
    """A weight that comes and goes.

    Attributes
    ----------
    is_available : gathered, and copied out of a buffer
    stays : always available, as it is small
    flight : in which it is gathered now
    """

    is_available = False
    stays = False
    flight: _Flight | None = None


class _Flight:
    """Weights being gathered: one alone is gathered into its own memory, several into a buffer."""

    def __init__(self, weights: list[GatheredWeight], gpus: int) -> None:
        tape, self.weights = active_tape(), weights
        shards = [one.shard for one in weights]
        size = sum(one.padded_elements * one.full.dtype.size for one in weights)
        collective = Collective("all_gather", size, gpus)
        self.buffer: Tensor | None = None
        if len(weights) == 1:
            weights[0].full.storage.restore()
            target: Tensor = weights[0].full
        else:
            elements = sum(one.padded_elements for one in weights)
            self.buffer = target = tape.empty((elements,), weights[0].full.dtype, "all_gather", kind="gathered")
        tape.launch("all_gather", shards, (target,), stream="gather", collective=collective)

    def land(self) -> None:
        """Wait, and copy the weights out of the buffer."""
        for one in self.weights:
            if self.buffer is not None:
                one.full.storage.restore()
                active_tape().launch("cat", (self.buffer,), (one.full,))
            one.show(one.full)
            one.is_available, one.flight = True, None
        self.buffer = None


def _own_weights(module: Module) -> Iterator[Parameter]:
    """Weights of a module itself; the data of a quantised weight are its linear layer's, whose hooks run."""
    for value in vars(module).values():
        if isinstance(value, Parameter):
            yield value
        elif isinstance(value, QuantizedWeight):
            yield from value.parameters()


class _OwnWeights(ModuleHooks):
    """A module with weights of its own."""

    def __init__(self, sharding: PartitionedWeights, module: Module, weights: list[GatheredWeight]) -> None:
        self.sharding, self.module, self.weights = sharding, module, weights

    def before_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self.sharding.fetch(self)
        tensors = list(with_gradient((args, kwargs)))
        if not tensors:
            return args, kwargs
        views = iter(behind("PostBackwardFunctionModuleBackward", lambda: self.sharding.release(self), tensors))
        return replaced(args, kwargs, lambda one: next(views) if one.records else one)

    def after_forward(self, output: Any) -> Any:
        self.sharding.release(self)
        for tensor in with_gradient(output):
            if tensor.node is not None:
                tensor.node.hooks = [*(tensor.node.hooks or ()), lambda: self.sharding.fetch(self)]
        return output


class _UseRecorder(ModuleHooks):
    """Notes when a module runs."""

    def __init__(self, of: _OwnWeights, order: list[_OwnWeights]) -> None:
        self.of, self.order = of, order

    def before_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self.order.append(self.of)
        return args, kwargs
