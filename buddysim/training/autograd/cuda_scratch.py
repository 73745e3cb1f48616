"""Memory that CUDA's kernels have for themselves while they run, and the CPU's have not."""

from __future__ import annotations

from buddysim.training.autograd.layout import is_contiguous
from buddysim.training.autograd.records import CUDA_SCRATCH
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor


def cuda_scratch(tape: Tape, operator: str, gradient: Tensor) -> Tensor | None:
    """Allocate it for a backward operator, until the result is dropped; None where there is none.

    The gradient times the result of a softmax (``SoftMax.cu``), and the gradient of a fused RMS norm made contiguous.
    """
    multiplies = operator == "_softmax_backward_data"
    copies = operator == "_fused_rms_norm_backward" and not is_contiguous(gradient.shape, gradient.strides)
    return tape.empty(gradient.shape, gradient.dtype, CUDA_SCRATCH) if multiplies or copies else None
