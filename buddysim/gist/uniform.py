"""Uniform precision reduction, for comparison: every result is rounded right after its operator.

Weights, feature maps, gradients and updates are rounded. Gist compares its delayed reduction with this scheme (Section
III-B). Operators compute in single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from buddysim.gist import dpr
from buddysim.gist.formats import find_format


class UniformPrecision(TorchDispatchMode):  # type: ignore[misc]
    """Context that rounds every single-precision result to a format.

    Parameters
    ----------
    module : module whose parameters are rounded on entry
    format : ``"fp16"``, ``"fp10"``, ``"fp8"``
    """

    def __init__(self, module: torch.nn.Module, format: str) -> None:
        super().__init__()
        self.format = find_format(format).name
        for parameter in module.parameters():
            self._round(parameter.detach())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        guard = torch._C._DisableTorchDispatch()
        for output in torch.utils._pytree.tree_leaves(result):
            if isinstance(output, torch.Tensor) and output.dtype == torch.float32:
                self._round(output)
        del guard
        return result

    def _round(self, tensor: torch.Tensor) -> None:
        values = tensor.detach().numpy()  # bypasses autograd's version counters: the program changes nothing
        values[...] = dpr.rounded(np.ascontiguousarray(values), self.format).reshape(values.shape)
