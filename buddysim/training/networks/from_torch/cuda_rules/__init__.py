"""The rules by which PyTorch chooses, casts and saves on a CUDA GPU, applied to tensors of the CPU.

Which tensors a training step keeps depends on the device. On the CPU, autocast casts by another list, dropout and
`rms_norm` run other operators, scaled dot-product attention returns other tensors, and layer norm's statistics have
another type. Within `cuda_rules` a step on the CPU, with real values or with fake tensors, allocates and saves what it
would on a GPU; the values agree but for rounding. `differences` lists every difference with the line of PyTorch's
sources that makes it.

Three layers do that, each where PyTorch itself decides:

- `autocast`: above autograd, kernels of the dispatch key AutocastCPU that follow CUDA's published list;
- `composites`: at autograd, the operators that PyTorch writes in terms of others by device;
- `kernels`: below autograd, results as CUDA's kernels return them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

Attention = Literal["efficient", "flash"]


@contextmanager
def cuda_rules(attention: Attention = "flash", kernels: bool = True) -> Iterator[None]:
    """PyTorch on the CPU as on a CUDA GPU, for this process, until the context ends.

    Parameters
    ----------
    attention : ``"flash"``: scaled dot-product attention takes the backend that PyTorch takes by itself (flash where it
        can, else efficient, else math); ``"efficient"``: as under ``sdpa_kernel`` without flash
    kernels : False: without the results of CUDA's kernels, for a caller that makes them itself (`SIGNATURES`)
    """
    from buddysim.training.networks.from_torch.below_autograd import below_autograd
    from buddysim.training.networks.from_torch.cuda_rules.autocast import CudaAutocast
    from buddysim.training.networks.from_torch.cuda_rules.composites import cuda_composites
    from buddysim.training.networks.from_torch.cuda_rules.kernels import cuda_kernels

    with ExitStack() as stack:
        stack.enter_context(CudaAutocast())
        stack.enter_context(cuda_composites(attention))
        if kernels:
            stack.enter_context(below_autograd(cuda_kernels))
        yield
