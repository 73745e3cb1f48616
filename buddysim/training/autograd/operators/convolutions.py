"""Convolutions without padding, of which patches of images are made."""

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
