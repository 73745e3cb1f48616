"""ZeRO 1 and 2: the optimizer's state, and gradients, are divided among GPUs; each one holds all weights.

DeepSpeed 0.18, ``runtime/zero/stage_1_and_2.py`` (`DeepSpeedZeroOptimizer`), with its defaults
(``contiguous_gradients``, ``use_multi_rank_bucket_allreduce``, no ``overlap_comm``). The first GPU is simulated.

weights
    All of them, as one sequence that is padded to a multiple of twice the number of GPUs. Each GPU has a copy of its
    part, in fp32 where the recipe has masters; this copy is what the optimizer updates.
backward
    A bucket of 5e8 elements is allocated with the first gradient. Gradients are copied into it, which ends them; when
    the next one doesn't fit, the bucket is reduced, by way of a copy if it belongs to several GPUs, and of its
    gradients those of this GPU's part are copied to a tensor of their own. Stage 2 does so as gradients arrive, stage 1
    behind the backward pass of the last micro-step, so that all gradients exist till then.
update
    This GPU's gradients are put together, cast to the format of the copy, the copy is updated and cast back, and all
    parts are gathered in the weights' own memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.records import Collective
from buddysim.training.autograd.tape import Tape, active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.step.training_step import TrainingStep

#: Elements of a bucket (``reduce_bucket_size``).
BUCKET_ELEMENTS = 500_000_000
#: ``nccl_start_alignment_factor``
_ALIGNMENT = 2


class PartitionedState(StepPart):
    """DeepSpeed's optimizer of stage 1 or 2.

    Parameters
    ----------
    stage : 1 or 2
    masters : whether the copy of this GPU's part is in fp32
    bucket_bytes : of the bucket; None: `BUCKET_ELEMENTS`
    """

    def __init__(self, stage: int, gpus: int, *, masters: bool, bucket_bytes: int | None) -> None:
        self.stage, self.gpus, self.masters, self.bucket_bytes = stage, gpus, masters, bucket_bytes
        self.weights: list[Parameter] = []
        self.part: Parameter | None = None
        self.bucket: Tensor | None = None
        self.pending: list[Parameter] = []
        self.filled = 0
        self.own: Tensor | None = None
        self.own_filled = 0
        self.gradients: list[Tensor] = []

    def optimized(self, step: TrainingStep, parameters: Sequence[Parameter]) -> Sequence[Parameter]:
        self.weights = list(parameters)
        dtype = self.weights[0].dtype
        alignment = _ALIGNMENT * self.gpus
        elements = sum(one.numel() for one in self.weights)
        self.part_elements = -(-elements // alignment) * alignment // self.gpus
        begins, begin = {}, 0
        for one in self.weights:
            begins[id(one)] = begin
            begin += one.numel()
        self.begins = begins
        self.bucket_elements = self.bucket_bytes // dtype.size if self.bucket_bytes else BUCKET_ELEMENTS
        self.part = Parameter((self.part_elements,), float32 if self.masters else dtype)
        self.part.storage.record.kind = "master"
        self.part.storage.record.label = "this GPU's part of all weights"
        for one in self.weights:
            one.after_accumulate = self._arrived
        return [self.part]

    # Backward.

    @contextmanager
    def backward(self, step: TrainingStep) -> Iterator[None]:
        if self.stage == 2 or step.last_micro_step:
            step.tape.after_backward.append(self._finish)
        yield

    def _arrived(self, weight: Tensor) -> None:
        if self.bucket is None:
            tape = active_tape()
            self.bucket = tape.empty((self.bucket_elements,), weight.dtype, "empty", kind="bucket")
        if self.stage == 2:
            self._take(weight)  # type: ignore[arg-type]

    def _take(self, weight: Parameter) -> None:
        """Copy a gradient into the bucket; one that is larger is reduced where it is."""
        elements = weight.numel()
        if self.filled + elements > self.bucket_elements:
            self._reduce()
        if elements <= self.bucket_elements:
            weight.grad = self._copied(weight, self.bucket, self.filled)
        self.filled += elements
        self.pending.append(weight)

    @staticmethod
    def _copied(weight: Parameter, target: Tensor | None, begin: int) -> Tensor:
        """A gradient's copy in a larger tensor."""
        assert target is not None
        assert weight.grad is not None
        strides = weight.grad.strides
        part = Tensor(weight.shape, strides, begin, target.dtype, target.storage, "narrow")
        active_tape().launch("copy_", (weight.grad,), (part,))
        return part

    def _is_own(self, weight: Parameter) -> bool:
        return self.begins[id(weight)] < self.part_elements

    def _reduce(self) -> None:
        """Reduce what is in the bucket, and keep this GPU's gradients."""
        if not self.pending:
            return
        tape = active_tape()
        large = self.filled > self.bucket_elements
        whole = self.pending[0].grad if large else self.bucket
        assert whole is not None
        reduced = Tensor((self.filled,), (1,), 0, whole.dtype, whole.storage, "narrow")
        tape.launch("div_", (reduced,), (reduced,))
        self._all_reduce(tape, reduced)
        for weight in self.pending:
            if self._is_own(weight):
                if self.own is None:
                    total = sum(one.numel() for one in self.weights if self._is_own(one))
                    self.own = tape.empty((total,), weight.dtype, "empty", kind="gradient")
                weight.grad = self._copied(weight, self.own, self.own_filled)
                self.own_filled += weight.numel()
            elif self.stage == 2:
                weight.grad = None
        self.pending, self.filled = [], 0

    def _all_reduce(self, tape: Tape, reduced: Tensor) -> None:
        """All GPUs' parts in one tensor: a copy, unless they belong to one GPU."""
        first, last = self.pending[0], self.pending[-1]
        ends = (self.begins[id(one)] + edge for one in (first, last) for edge in (0, one.numel() - 1))
        several = len({end // self.part_elements for end in ends}) > 1
        flat = tape.empty(reduced.shape, reduced.dtype, "cat", kind="bucket") if several else reduced
        if several:
            tape.launch("cat", (reduced,), (flat,))
        collective = Collective("all_reduce", reduced.numel() * reduced.dtype.size, self.gpus)
        tape.launch("all_reduce", (flat,), (flat,), collective=collective)
        if several:
            tape.launch("copy_", (flat,), (reduced,))

    def _finish(self) -> None:
        """At the end of the backward pass: reduce the rest, add to earlier micro-steps, give the bucket back."""
        if self.stage == 1:
            for weight in self.weights:
                if weight.grad is not None:
                    self._take(weight)
        self._reduce()
        new = [one.grad for one in self.weights if self._is_own(one) and one.grad is not None]
        if self.gradients:
            for old, gradient in zip(self.gradients, new, strict=True):
                active_tape().launch("add_", (old, gradient), (old,))
        else:
            self.gradients = new
        for weight in self.weights:
            weight.grad = None
        self.bucket = self.own = None
        self.own_filled = 0

    # Update.

    @contextmanager
    def update(self, step: TrainingStep) -> Iterator[None]:
        """Make the gradient of this GPU's part, and gather all parts behind the optimizer's step."""
        tape, part = step.tape, self.part
        assert part is not None
        flat = tape.empty((self.part_elements,), self.weights[0].dtype, "cat", kind="gradient")
        tape.launch("cat", self.gradients, (flat,))
        if flat.dtype is not part.dtype:
            cast = tape.empty(flat.shape, part.dtype, "_to_copy", kind="gradient")
            tape.launch("_to_copy", (flat,), (cast,))
            flat = cast
            del cast
        part.grad = flat
        del flat
        self.gradients = []
        yield
        part.grad = None
        own = [one for one in self.weights if self._is_own(one)]
        tape.launch("copy_", (part,), own)
        size = self.part_elements * self.gpus * self.weights[0].dtype.size
        collective = Collective("all_gather", size, self.gpus)
        tape.launch("all_gather", own, self.weights, collective=collective)
