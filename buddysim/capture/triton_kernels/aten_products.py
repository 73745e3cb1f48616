"""Products that Inductor leaves to ATen, as kernels of ``capture torch``: the tiled product's model, else one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from buddysim.capture.torch.access.graph_accesses import OnePassKernel
from buddysim.capture.torch.access.launch import ModelledKernel
from buddysim.capture.torch.access.operators import OperatorCall, launches_of
from buddysim.capture.torch.access.tensors import TensorView
from buddysim.capture.torch.operator_kernels import OperandRange

#: Operators of `capture torch`, by the name of Inductor's call. Others read each operand and write each result once.
_MODELLED: Final = {"mm": "mm", "addmm": "addmm", "bias_addmm": "addmm"}


def product_kernels(
    name: str, inputs: list[tuple[Any, int]], output: tuple[Any, int]
) -> list[ModelledKernel | OnePassKernel]:
    """Return the kernels of a call.

    Parameters
    ----------
    name : of Inductor's call
    inputs, output : tensors, with their addresses on the GPU
    """
    views = [_view(*each) for each in inputs]
    result = _view(*output)
    if name in _MODELLED:
        models = launches_of(OperatorCall(_MODELLED[name], tuple(views), (result,)))
        if models is not None:
            return [replace(model, name=f"{name}: {model.name}") for model in models]
    flops = 2 * result.elements * (views[-1].shape[-2] if len(views[-1].shape) > 1 else 1)
    reads = dict.fromkeys(OperandRange(view.address, _extent(view), False) for view in views)
    return [OnePassKernel(name, (*reads, OperandRange(result.address, _extent(result), True)), flops)]


def _view(tensor: Any, address: int) -> TensorView:
    return TensorView(address, tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype).removeprefix("torch."))


def _extent(view: TensorView) -> int:
    """Return the bytes from the first element to the end of the last one."""
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True))
    return (last + 1) * view.element_bytes
