"""DDP: each GPU holds the whole model, and gradients are averaged in buckets while the backward pass runs.

PyTorch 2.13, ``torch/csrc/distributed/c10d/reducer.cpp``. Buckets are tensors of their own that are there from the
start, so gradients exist twice (``gradient_as_bucket_view=False``, the default). A gradient that is done is copied into
its bucket, divided by the number of GPUs; a bucket whose gradients are all there is reduced. At the end of the backward
pass the results are copied back. Gradients are assigned to buckets in the order in which they arrive, as DDP does
behind its first step: a bucket is full once it has 25 MiB, the first one once it has 1 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.autograd.records import Collective
from buddysim.training.autograd.tape import Tape, active_tape
from buddysim.training.autograd.tensor import Tensor, TensorStorage
from buddysim.training.step.part import StepPart

if TYPE_CHECKING:
    from buddysim.training.step.training_step import TrainingStep

MIB = 1 << 20
#: Bytes from which on a bucket is full, and those of the first one (``dist._DEFAULT_FIRST_BUCKET_BYTES``).
BUCKET_BYTES = 25 * MIB
FIRST_BUCKET_BYTES = MIB


class GradientBucket:
    """Gradients of one number format that are reduced together.

    Attributes
    ----------
    members : weights, and where their gradients begin
    missing : how many gradients aren't there yet
    """

    def __init__(self, tape: Tape, dtype: DType) -> None:
        self.dtype = dtype
        self.storage: TensorStorage = tape.allocate(0, "empty", "bucket", "gradient bucket")
        self.members: list[tuple[Tensor, int]] = []
        self.missing = 0

    @property
    def bytes(self) -> int:
        return self.storage.record.bytes

    def add(self, weight: Tensor) -> None:
        """Enlarge the bucket by a weight's gradient."""
        self.members.append((weight, self.bytes // self.dtype.size))
        self.storage.record.bytes += weight.numel() * self.dtype.size

    def part(self, weight: Tensor, begin: int) -> Tensor:
        """A gradient's part of the bucket."""
        return Tensor(weight.shape, contiguous_strides(weight.shape), begin, self.dtype, self.storage, "as_strided")

    def whole(self) -> Tensor:
        """The bucket as a tensor."""
        return Tensor((self.bytes // self.dtype.size,), (1,), 0, self.dtype, self.storage, "as_strided")


class DataParallel(StepPart):
    """DDP around the model.

    Parameters
    ----------
    bucket_bytes, first_bucket_bytes : from which on a bucket, and the first one, is full
    """

    def __init__(self, gpus: int, bucket_bytes: int, first_bucket_bytes: int) -> None:
        self.gpus, self.limits = gpus, (first_bucket_bytes, bucket_bytes)
        self.buckets: list[GradientBucket] = []
        self.bucket_of: dict[int, tuple[GradientBucket, int]] = {}
        self.filling: dict[DType, GradientBucket] = {}
        self.is_reducing = self.is_assigned = False

    def model_built(self, step: TrainingStep) -> None:
        for one in step.model.parameters():
            if one.requires_grad:
                one.after_accumulate = self.ready

    @contextmanager
    def backward(self, step: TrainingStep) -> Iterator[None]:
        """Reduce the gradients of the last micro-step; the others are ``no_sync``."""
        self.is_reducing = step.last_micro_step
        if self.is_reducing:
            for bucket in self.buckets:
                bucket.missing = len(bucket.members)
            step.tape.after_backward.append(self.finish)
        yield

    def ready(self, weight: Tensor) -> None:
        """Copy a gradient into its bucket, and reduce that when it is complete."""
        if not self.is_reducing:
            return
        if not self.is_assigned:
            self._assign(weight)
        bucket, begin = self.bucket_of[id(weight)]
        assert weight.grad is not None
        active_tape().launch("mul", (weight.grad,), (bucket.part(weight, begin),))
        bucket.missing -= 1
        if bucket.missing == 0:
            self._reduce(bucket)
        if not self.is_assigned and bucket.bytes >= self._limit(bucket):
            del self.filling[bucket.dtype]
            self._reduce(bucket)

    def _assign(self, weight: Tensor) -> None:
        bucket = self.filling.get(weight.dtype)
        if bucket is None:
            bucket = self.filling[weight.dtype] = GradientBucket(active_tape(), weight.dtype)
            self.buckets.append(bucket)
        bucket.add(weight)
        self.bucket_of[id(weight)] = bucket, bucket.members[-1][1]

    def _limit(self, bucket: GradientBucket) -> int:
        first = next(one for one in self.buckets if one.dtype is bucket.dtype)
        return self.limits[0] if bucket is first else self.limits[1]

    def _reduce(self, bucket: GradientBucket) -> None:
        whole = bucket.whole()
        collective = Collective("all_reduce", bucket.bytes, self.gpus)
        active_tape().launch("all_reduce", (whole,), (whole,), stream="reduce", collective=collective)

    def finish(self) -> None:
        """Wait for the reductions, and copy the results back."""
        tape = active_tape()
        for bucket in self.filling.values():
            self._reduce(bucket)
        self.filling.clear()
        if not self.is_assigned:
            self.is_assigned = True
            tape.made_before([one.storage.record for one in self.buckets])
        for bucket in self.buckets:
            tape.launch("wait", (bucket.whole(),), ())
            for weight, begin in bucket.members:
                if weight.grad is not None:
                    tape.launch("copy_", (bucket.part(weight, begin),), (weight.grad,))
