"""Convolutions: of patches of images, and of each channel of a sequence."""

from __future__ import annotations

from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.tensor import Tensor

_KERNEL = "convolution"


class ConvolutionBackward0(GraphNode):
    """One kernel for the gradients of input, weight and bias."""

    __slots__ = ("bias", "product")
    name = "ConvolutionBackward0"

    def __init__(self, x: Tensor, weight: Tensor, bias: Tensor, product: Product, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x, weight, bias))
        self.product, self.bias = product, bias.shape
        self.save("input", x)
        self.save("weight", weight)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, weight = self.saved
        name, m, n, k = "convolution_backward", *self.product[:3]
        first = self._empty(x.shape, x, name) if self.needs(0) else None
        second = self._empty(weight.shape, weight, name) if self.needs(1) else None
        third = self._empty(self.bias, weight, name) if self.needs(2) else None
        products = [Product(m, k, n, 1)] if first is not None else []
        products += [Product(n, k, m, 1)] if second is not None else []
        results = [one for one in (first, second, third) if one is not None]
        self.tape.launch(name, (gradient, x, weight), results, tuple(products))
        return first, second, third

    def _empty(self, shape: tuple[int, ...], like: Tensor, name: str) -> Tensor:
        return self.tape.empty(shape, like.dtype, name, contiguous_strides(shape))


def conv2d(x: Tensor, weight: Tensor, bias: Tensor, stride: tuple[int, int]) -> Tensor:
    """Images (batch x channels x height x width) to features by a kernel that moves by `stride` pixels."""
    tape = x.storage.tape
    x, weight, bias = tape.lower(x), tape.lower(weight), tape.lower(bias)
    batch, channels, height, width = x.shape
    features, _, kernel_height, kernel_width = weight.shape
    rows, columns = (height - kernel_height) // stride[0] + 1, (width - kernel_width) // stride[1] + 1
    product = Product(batch * rows * columns, features, channels * kernel_height * kernel_width, 1)
    result = tape.empty((batch, features, rows, columns), x.dtype, _KERNEL)
    tape.launch(_KERNEL, (x, weight, bias), (result,), (product,))
    if x.records or weight.records or bias.records:
        ConvolutionBackward0(x, weight, bias, product, result)
    return result


class DepthwiseBackward0(GraphNode):
    """One kernel for the gradients of input, weight and bias."""

    __slots__ = ("bias", "flops")
    name = "ConvolutionBackward0"

    def __init__(self, x: Tensor, weight: Tensor, bias: Tensor | None, flops: int, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x, weight, bias))
        self.flops, self.bias = flops, bias.shape if bias is not None else None
        self.save("input", x)
        self.save("weight", weight)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, weight = self.saved
        name = "convolution_backward"
        first = self.tape.empty(x.shape, x.dtype, name) if self.needs(0) else None
        second = self.tape.empty(weight.shape, weight.dtype, name) if self.needs(1) else None
        third = self.tape.empty(self.bias, weight.dtype, name) if self.bias is not None and self.needs(2) else None
        results = [one for one in (first, second, third) if one is not None]
        self.tape.launch(name, (gradient, x, weight), results, flops=2 * self.flops)
        return first, second, third


def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None, padding: int) -> Tensor:
    """Each channel of sequences (batch x channels x tokens) by a kernel of its own, zeros at both ends."""
    tape = x.storage.tape
    x, weight = tape.lower(x), tape.lower(weight)
    bias = tape.lower(bias) if bias is not None else None
    (batch, channels, tokens), width = x.shape, weight.shape[-1]
    result = tape.empty((batch, channels, tokens + 2 * padding - width + 1), x.dtype, _KERNEL)
    flops = 2 * result.numel() * width
    reads = [one for one in (x, weight, bias) if one is not None]
    tape.launch(_KERNEL, reads, (result,), flops=flops)
    if any(one.records for one in reads):
        DepthwiseBackward0(x, weight, bias, flops, result)
    return result
