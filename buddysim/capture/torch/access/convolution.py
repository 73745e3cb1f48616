"""Convolutions as matrix products with operands gathered on the fly (cuDNN's implicit GEMM), layout NCHW.

Forward: rows are output channels, columns the pixels of all images, k runs over input channels and filter positions.
Backward for the data: rows are input channels, columns input pixels, k output channels and filter positions. Backward
for the filter: rows are output channels, columns input channels and filter positions, k all output pixels; thread
blocks that share a tile take parts of k and add atomically (cuDNN's algorithm 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from buddysim.capture.torch.access.elementwise import elementwise
from buddysim.capture.torch.access.launch import OFF, Addresses, ModelledKernel
from buddysim.capture.torch.access.tensors import TensorView
from buddysim.capture.torch.access.tile_product import MatmulOperand, MatmulResult, TiledMatmul

_VECTOR = 4


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

    def _gathered(self, pixel: Addresses, position: Addresses) -> Addresses:
        """Return the address of the input element under a filter position, for a pixel of the output."""
        image, p, q = self._pixel(self.out, pixel)
        channel, r, s = self._filter_position(position)
        h = p * self.stride[0] - self.padding[0] + r * self.dilation[0]
        w = q * self.stride[1] - self.padding[1] + s * self.dilation[1]
        inside = (h >= 0) & (h < self.data.shape[2]) & (w >= 0) & (w < self.data.shape[3])
        return np.where(inside, self.data.element_address(image, channel, h, w), OFF)

    def _scattered(self, pixel: Addresses, position: Addresses) -> Addresses:
        """Return the address of the output element to which an input pixel contributes through a filter position."""
        image, h, w = self._pixel(self.data, pixel)
        channel, r, s = self._filter_position(position)
        p, off_p = np.divmod(h + self.padding[0] - r * self.dilation[0], self.stride[0])
        q, off_q = np.divmod(w + self.padding[1] - s * self.dilation[1], self.stride[1])
        inside = (off_p == 0) & (off_q == 0) & (p >= 0) & (p < self.out.shape[2]) & (q >= 0) & (q < self.out.shape[3])
        return np.where(inside, self.out.element_address(image, channel, p, q), OFF)

    def _written(self, view: TensorView) -> MatmulResult:
        def address_of(channel: Addresses, pixel: Addresses) -> Addresses:
            image, row, column = self._pixel(view, pixel)
            return view.element_address(image, channel, row, column)

        return MatmulResult(address_of, self._vector(view))

    def forward(self, name: str = "implicit_gemm") -> ModelledKernel:
        """Return the kernel that computes `out`; a separate kernel adds a bias."""
        k, c, r, s = self.filter.shape
        left = MatmulOperand(
            lambda m, position: self.filter.address + 4 * (m * (c * r * s) + position),
            "k",
            _VECTOR if c * r * s % _VECTOR == 0 and self.filter.is_aligned(4 * _VECTOR) else 1,
        )
        right = MatmulOperand(self._gathered, "tile", self._vector(self.data) if self._plain else 1)
        return TiledMatmul(name, k, self._pixels(self.out), c * r * s, left, right, self._written(self.out)).launch()

    def backward_data(self, name: str = "implicit_gemm_dgrad") -> ModelledKernel:
        """Return the kernel that computes `data` from `out`."""
        k, c, r, s = self.filter.shape

        def filtered(m: Addresses, position: Addresses) -> Addresses:
            channel, row, column = self._filter_position(position)
            return self.filter.element_address(channel, m, row, column)

        left = MatmulOperand(filtered, "k")
        right = MatmulOperand(self._scattered, "tile", self._vector(self.out) if self._plain else 1)
        return TiledMatmul(name, c, self._pixels(self.data), k * r * s, left, right, self._written(self.data)).launch()

    def backward_filter(self, name: str = "implicit_gemm_wgrad") -> Iterator[ModelledKernel]:
        """Yield the kernels of `filter` from `data` and `out`; the first one clears it if parts are added."""
        k, c, r, s = self.filter.shape
        pixels = self._pixels(self.out)

        def of_out(m: Addresses, pixel: Addresses) -> Addresses:
            image, row, column = self._pixel(self.out, pixel)
            return self.out.element_address(image, m, row, column)

        left = MatmulOperand(of_out, "k", self._vector(self.out))
        right = MatmulOperand(
            lambda n, pixel: self._gathered(pixel, n), "k", self._vector(self.data) if self._plain else 1
        )
        result = MatmulResult(lambda m, n: self.filter.address + 4 * (m * (c * r * s) + n))
        product = TiledMatmul(name, k, c * r * s, pixels, left, right, result, divide_k=True)
        if product.parts > 1:
            yield elementwise("fill", [], [self.filter])
        yield product.launch()

    @staticmethod
    def _pixels(view: TensorView) -> int:
        return view.shape[0] * view.shape[2] * view.shape[3]
