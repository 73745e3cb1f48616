"""Weights of 4 bits: in each block of 64 the sixteen values of NormalFloat, times a scale that is quantised itself.

Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs" (2023), section 3. Blocks of 256 scales share an offset
and a factor ("double quantisation"). Two libraries hold other tensors, and dequantise in other steps:

torchao (``dtypes/nf4tensor.py``), which torchtune uses
    scales of 8 bits with their mean taken away, a factor for each 256 of them and the table in the number format of the
    weight. A weight has whole blocks of 64 and of 256 scales. `get_original_weight` is a chain of PyTorch's operators
    with indices of 64 bits: 14 bytes for each element of the weight live at its end. ``torch.compile`` makes it one
    kernel.
bitsandbytes (``functional.py``: `quantize_4bit`, `dequantize_4bit`), which PEFT uses
    scales of 8 bits as numbers of a table of 256, their factors, their mean and both tables in fp32; own kernels.

In both the weight itself is saved for the backward pass, and is dequantised again there. FSDP divides torchao's weight
with its scales and factors; of bitsandbytes' it divides the elements alone. What isn't divided is a buffer here.
"""

from __future__ import annotations

from math import prod

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import DType, float32, int8, int64, uint8
from buddysim.training.autograd.function import Function
from buddysim.training.autograd.layout import Shape
from buddysim.training.autograd.module import Module, Parameter
from buddysim.training.autograd.node import Gradients
from buddysim.training.autograd.operators.pointwise import in_place, pointwise
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor

BLOCK = 64
SCALE_BLOCK = 256
_LEVELS = 16


class QuantizedWeight(Module):
    """A weight of shape (outputs, inputs) in 4 bits.

    Parameters
    ----------
    dtype : in which products are computed
    """

    def __init__(self, shape: Shape, dtype: DType) -> None:
        super().__init__()
        self.shape, self.dtype = shape, dtype

    @property
    def data(self) -> Tensor:
        """Two elements a byte."""
        raise NotImplementedError

    def dequantized(self) -> Tensor:
        """Return the weight, in its number format."""
        raise NotImplementedError

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Return ``x @ weight.T + bias``."""
        raise NotImplementedError


class TorchaoWeight(QuantizedWeight):
    """As torchao's ``NF4Tensor``.

    Parameters
    ----------
    path : of the module, for errors
    fused : dequantised in one kernel, as compiled code does

    Raises
    ------
    BuddysimError
        a weight that doesn't divide into blocks
    """

    def __init__(self, path: str, shape: Shape, dtype: DType, *, fused: bool) -> None:
        super().__init__(shape, dtype)
        elements = prod(shape)
        if elements % (BLOCK * SCALE_BLOCK):
            raise BuddysimError(
                f"qlora: {path} has {elements} weights: torchao quantises multiples of {BLOCK * SCALE_BLOCK}: "
                "expected lora_library peft (bitsandbytes quantises any number)"
            )
        self.fused = fused
        self.quantized_data = _frozen((elements // 2,), uint8)
        self.quantized_scalers = _frozen((elements // BLOCK,), int8)
        self.quantization_factor = _frozen((elements // BLOCK // SCALE_BLOCK,), dtype)
        self.scaler_mean = active_tape().buffer((), dtype)
        self.nf4 = active_tape().buffer((_LEVELS,), dtype)

    @property
    def data(self) -> Tensor:
        return self.quantized_data

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        out = LinearNF4.apply(x, self)
        return out if bias is None else out + bias

    def dequantized(self) -> Tensor:
        if self.fused:
            result = active_tape().empty(self.shape, self.dtype, "nf4_dequantize")
            parts = self.quantized_data, self.quantized_scalers, self.quantization_factor, self.scaler_mean, self.nf4
            active_tape().launch("nf4_dequantize", parts, (result,))
            return result
        first_elements = pointwise("__rshift__", self.quantized_data).to(int64)
        second_elements = pointwise("bitwise_and", self.quantized_data).to(int64)
        dequantized_first = F.index(self.nf4, first_elements)
        dequantized_second = F.index(self.nf4, second_elements)
        scalers = self._dequantized_scalers()
        repeated = scalers.unsqueeze(-1).expand(scalers.shape[0], BLOCK // 2)
        scaled_first = dequantized_first * repeated.flatten()
        scaled_second = dequantized_second * repeated.flatten()
        scaled_first = scaled_first.unsqueeze(-1).transpose(0, 1)
        scaled_second = scaled_second.unsqueeze(-1).transpose(0, 1)
        return F.stack([scaled_first, scaled_second], dim=-1).reshape(*self.shape)

    def _dequantized_scalers(self) -> Tensor:
        blocks = self.quantized_scalers.view(-1, SCALE_BLOCK)
        return (blocks / self.quantization_factor.unsqueeze(-1)).flatten() + self.scaler_mean


class LinearNF4(Function):
    """torchao's product, which saves the quantised weight."""

    __slots__ = ("weight",)
    weight: TorchaoWeight

    def compute(self, x: Tensor, weight: TorchaoWeight) -> Tensor:
        """Return the product."""
        self.weight = weight
        self.save_for_backward(weight.data)
        return F.linear(x, weight.dequantized().to(x.dtype))

    def backward(self, gradient: Tensor) -> Gradients:
        return (gradient @ self.weight.dequantized().to(gradient.dtype),)


class BitsandbytesWeight(QuantizedWeight):
    """As bitsandbytes' ``Params4bit`` with its ``QuantState``."""

    def __init__(self, shape: Shape, dtype: DType) -> None:
        super().__init__(shape, dtype)
        elements = prod(shape)
        blocks = -(-elements // BLOCK)
        self.quantized_data = _frozen(((elements + 1) // 2, 1), uint8)
        tape = active_tape()
        self.absmax = tape.buffer((blocks,), uint8)
        self.nested_absmax = tape.buffer((-(-blocks // SCALE_BLOCK),), float32)
        self.nested_quant_map = tape.buffer((256,), float32)
        self.offset = tape.buffer((), float32)
        self.quant_map = tape.buffer((_LEVELS,), float32)

    @property
    def data(self) -> Tensor:
        return self.quantized_data

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        dtype = x.dtype
        x = x.to(self.dtype)
        return MatMul4Bit.apply(x, self, None if bias is None else bias.to(self.dtype)).to(dtype)

    def dequantized(self) -> Tensor:
        tape = active_tape()
        absmax = tape.empty(self.absmax.shape, float32, "dequantize_blockwise")
        tape.launch("dequantize_blockwise", (self.absmax, self.nested_absmax, self.nested_quant_map), (absmax,))
        in_place("add_", absmax, self.offset)
        out = tape.empty(self.shape, self.dtype, "dequantize_4bit")
        tape.launch("dequantize_4bit", (self.quantized_data, absmax), (out,))
        return out


class MatMul4Bit(Function):
    """bitsandbytes' product, which keeps the quantised weight."""

    __slots__ = ("weight",)
    weight: BitsandbytesWeight

    def compute(self, x: Tensor, weight: BitsandbytesWeight, bias: Tensor | None) -> Tensor:
        """Return the product."""
        self.weight = weight
        return F.linear(x, weight.dequantized().to(x.dtype), bias)

    def backward(self, gradient: Tensor) -> Gradients:
        x = gradient @ self.weight.dequantized().to(gradient.dtype)
        return (x, None) if len(self.edges) == 2 else (x,)


def _frozen(shape: Shape, dtype: DType) -> Parameter:
    return Parameter(shape, dtype, requires_grad=False)


def quantize(library: str, path: str, shape: Shape, dtype: DType, *, fused: bool) -> QuantizedWeight:
    """Return a weight of a shape, quantised as the library of adapters does.

    Parameters
    ----------
    library : ``torchtune`` or ``peft``
    path, fused : see `TorchaoWeight`
    """
    if library == "torchtune":
        return TorchaoWeight(path, shape, dtype, fused=fused)
    return BitsandbytesWeight(shape, dtype)
