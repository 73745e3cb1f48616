"""Convolutions as matrix products with operands gathered on the fly (cuDNN's implicit GEMM), layout NCHW.

Forward: rows are output channels, columns the pixels of all images, k runs over input channels and filter positions.
Backward for the data: rows are input channels, columns input pixels, k output channels and filter positions. Backward
for the filter: rows are output channels, columns input channels and filter positions, k all output pixels; thread
blocks that share a tile take parts of k and add atomically (cuDNN's algorithm 0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from buddysim.capture.torch.access.elementwise import elementwise
from buddysim.capture.torch.access.launch import Addresses, ModelledKernel
from buddysim.capture.torch.access.tensors import TensorView
from buddysim.capture.torch.access.tile_addresses import ElementAddresses, ProductAxis, Window
from buddysim.capture.torch.access.tile_product import MatmulOperand, MatmulResult, TiledMatmul

_VECTOR = 4
_ELEMENT = 4
_Position = Callable[[Addresses, Addresses], tuple[Addresses, Addresses]]


@dataclass(frozen=True)
class Convolution:
    """A two-dimensional convolution with one group.

    Attributes
    ----------
    data, filter, out : input (N, C, H, W), filters (K, C, R, S), output (N, K, P, Q); or their gradients
    stride, padding, dilation : along the height and the width
    """

    data: TensorView
    filter: TensorView
    out: TensorView
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    @property
    def _plain(self) -> bool:
        """Whether a pixel of the output depends on the one pixel of the input at the same position."""
        return self.filter.shape[2:] == (1, 1) and self.data.shape[2:] == self.out.shape[2:]

    def _vector(self, pixels: TensorView) -> int:
        """Return the number of pixels that a thread fetches at once."""
        return _VECTOR if prod(pixels.shape[2:]) % _VECTOR == 0 and pixels.is_aligned(4 * _VECTOR) else 1

    def _pixel(self, view: TensorView, number: Addresses) -> tuple[Addresses, Addresses, Addresses]:
        """Return image, row and column of a pixel; pixels are numbered across all images."""
        image, rest = np.divmod(number, view.shape[2] * view.shape[3])
        return image, *np.divmod(rest, view.shape[3])

    def _filter_position(self, number: Addresses) -> tuple[Addresses, Addresses, Addresses]:
        """Return channel, row and column of a filter position."""
        channel, rest = np.divmod(number, self.filter.shape[2] * self.filter.shape[3])
        return channel, *np.divmod(rest, self.filter.shape[3])

    def _images(self, view: TensorView) -> ElementAddresses:
        """Return the addresses of a tensor's elements, by channel and pixel."""

        def offset(number: Addresses) -> Addresses:
            image, row, column = self._pixel(view, number)
            return view.element_address(image, 0, row, column) - view.address

        channel_bytes = _ELEMENT * view.strides[1]
        channels = ProductAxis(view.shape[1], lambda number: number * channel_bytes)
        return ElementAddresses(view.address, channels, ProductAxis(self._pixels(view), offset))

    def _under_filter(
        self, view: TensorView, pixels: TensorView, position: _Position, direction: int, stride: tuple[int, int]
    ) -> ElementAddresses:
        """Return the addresses of the elements of `view` under the filter, by pixel and by channel and filter position.

        Parameters
        ----------
        position : function from rows and columns of `pixels` to those of the filter's first element
        direction : of the filter's elements: 1 or -1
        stride : of these rows and columns, from one element to the next
        """
        image_bytes, channel_bytes, row_bytes, column_bytes = (_ELEMENT * one for one in view.strides)

        def of_pixel(number: Addresses) -> tuple[Addresses, Addresses]:
            return position(*self._pixel(pixels, number)[1:])

        def of_filter(number: Addresses) -> tuple[Addresses, Addresses]:
            _, r, s = self._filter_position(number)
            return direction * r * self.dilation[0], direction * s * self.dilation[1]

        return ElementAddresses(
            view.address,
            ProductAxis(self._pixels(pixels), lambda number: self._pixel(pixels, number)[0] * image_bytes, of_pixel),
            ProductAxis(
                view.shape[1] * prod(self.filter.shape[2:]),
                lambda number: self._filter_position(number)[0] * channel_bytes,
                of_filter,
            ),
            Window((view.shape[2], view.shape[3]), stride, (row_bytes, column_bytes)),
        )

    def _gathered(self) -> ElementAddresses:
        """Return the addresses of the input elements under each filter position, for a pixel of the output."""

        def position(p: Addresses, q: Addresses) -> tuple[Addresses, Addresses]:
            return p * self.stride[0] - self.padding[0], q * self.stride[1] - self.padding[1]

        return self._under_filter(self.data, self.out, position, 1, (1, 1))

    def _scattered(self) -> ElementAddresses:
        """Return those of the output elements to which an input pixel contributes through each filter position."""

        def position(h: Addresses, w: Addresses) -> tuple[Addresses, Addresses]:
            return h + self.padding[0], w + self.padding[1]

        return self._under_filter(self.out, self.data, position, -1, self.stride)

    def _filters(self) -> ElementAddresses:
        """Return the addresses of the filters' elements, by output channel and by input channel and position."""
        k, each = self.filter.shape[0], prod(self.filter.shape[1:])
        return ElementAddresses(
            self.filter.address,
            ProductAxis(k, lambda number: _ELEMENT * each * number),
            ProductAxis(each, lambda number: _ELEMENT * number),
        )

    def _filters_by_input(self) -> ElementAddresses:
        """Return the addresses of the filters' elements, by input channel and by output channel and position."""
        k, c, r, s = self.filter.shape

        def offset(number: Addresses) -> Addresses:
            channel, row, column = self._filter_position(number)
            return self.filter.element_address(channel, 0, row, column) - self.filter.address

        channel_bytes = _ELEMENT * self.filter.strides[1]
        channels = ProductAxis(c, lambda number: number * channel_bytes)
        return ElementAddresses(self.filter.address, channels, ProductAxis(k * r * s, offset))

    def forward(self, name: str = "implicit_gemm") -> ModelledKernel:
        """Return the kernel that computes `out`; a separate kernel adds a bias."""
        k, each = self.filter.shape[0], prod(self.filter.shape[1:])
        left = MatmulOperand(
            self._filters(), "k", _VECTOR if each % _VECTOR == 0 and self.filter.is_aligned(4 * _VECTOR) else 1
        )
        right = MatmulOperand(self._gathered(), "tile", self._vector(self.data) if self._plain else 1)
        result = MatmulResult(self._images(self.out), self._vector(self.out))
        return TiledMatmul(name, k, self._pixels(self.out), each, left, right, result).launch()

    def backward_data(self, name: str = "implicit_gemm_dgrad") -> ModelledKernel:
        """Return the kernel that computes `data` from `out`."""
        k, c, r, s = self.filter.shape
        left = MatmulOperand(self._filters_by_input(), "k")
        right = MatmulOperand(self._scattered(), "tile", self._vector(self.out) if self._plain else 1)
        result = MatmulResult(self._images(self.data), self._vector(self.data))
        return TiledMatmul(name, c, self._pixels(self.data), k * r * s, left, right, result).launch()

    def backward_filter(self, name: str = "implicit_gemm_wgrad") -> Iterator[ModelledKernel]:
        """Yield the kernels of `filter` from `data` and `out`; the first one clears it if parts are added."""
        k, each = self.filter.shape[0], prod(self.filter.shape[1:])
        left = MatmulOperand(self._images(self.out), "k", self._vector(self.out))
        right = MatmulOperand(self._gathered().turned, "k", self._vector(self.data) if self._plain else 1)
        pixels = self._pixels(self.out)
        product = TiledMatmul(name, k, each, pixels, left, right, MatmulResult(self._filters()), divide_k=True)
        if product.parts > 1:
            yield elementwise("fill", [], [self.filter])
        yield product.launch()

    @staticmethod
    def _pixels(view: TensorView) -> int:
        return view.shape[0] * view.shape[2] * view.shape[3]
