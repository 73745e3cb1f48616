"""Work of a layer for a batch: multiplications, bytes, and the class that determines its efficiency.

A pass of a CONV is one matrix product (Chetlur et al., cuDNN, 2014, section 3): forward has ``N OH OW`` rows, ``K``
columns and an inner extent of ``C R S``; backward-data has the input's pixels, ``C`` and ``K R S``; backward-filter ``C
R S``, ``K`` and the output's pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from buddysim.training.networks.graph import ELEMENT_BYTES, Conv

Pass = Literal["forward", "backward_data", "backward_filter"]
PASSES: tuple[Pass, ...] = ("forward", "backward_data", "backward_filter")

FIRST_CHANNELS = 4
"""Maximum input channels of a CONV in class "first", which reads the image: too few to fill a tile's inner extent."""

WIDE_CHANNELS = 128
"""Minimum input and output channels of a wide 3x3 CONV: Winograd's products are then deep enough."""

CLASSES = ("first", "1x1", "1x1-strided", "3x3", "3x3-wide", "large", "strided")
"""Classes of CONV: by few input channels, then stride, then window size."""

WINOGRAD_CLASSES = ("3x3", "3x3-wide")

GROUPED = "grouped"
"""Class of a CONV in groups, depthwise ones included; none was timed, so no calibration has it."""


@dataclass(frozen=True)
class MatmulWork:
    """Matrix product: ``rows x inner`` times ``inner x cols``, `count` times."""

    rows: float
    cols: float
    inner: float
    count: int = 1

    @property
    def flops(self) -> float:
        """Return the FLOPs, two per multiply-add."""
        return 2.0 * self.rows * self.cols * self.inner * self.count

    def of_pass(self, pass_: Pass) -> MatmulWork:
        """Return the product of a pass, if this one is the forward product and its second operand is a parameter."""
        if pass_ == "forward":
            return self
        if pass_ == "backward_data":
            return MatmulWork(self.rows, self.inner, self.cols, self.count)
        return MatmulWork(self.inner, self.cols, self.rows, self.count)

    @property
    def bytes(self) -> float:
        """Return the bytes of the three matrices."""
        moved = self.rows * self.inner + self.inner * self.cols + self.rows * self.cols
        return float(moved * self.count * ELEMENT_BYTES)


@dataclass(frozen=True)
class ConvWork:
    """CONV with its batch."""

    conv: Conv
    batch: int

    @property
    def flops(self) -> int:
        """Return the FLOPs of one pass by the direct method, two per multiply-add."""
        return 2 * self.conv.multiply_adds * self.batch

    @property
    def x_bytes(self) -> int:
        """Return the bytes of the input feature map, or of its gradient."""
        return self.batch * self.conv.in_channels * self.conv.in_h * self.conv.in_w * ELEMENT_BYTES

    @property
    def y_bytes(self) -> int:
        """Return the bytes of the output feature map, or of its gradient."""
        return self.batch * self.conv.out_channels * self.conv.out_h * self.conv.out_w * ELEMENT_BYTES

    @property
    def w_bytes(self) -> int:
        """Return the bytes of the filters, or of their gradient."""
        return self.conv.weights * ELEMENT_BYTES

    @property
    def bytes(self) -> int:
        """Return the minimum bytes of each pass: one of X, Y and W is written, the other two are read."""
        return self.x_bytes + self.y_bytes + self.w_bytes

    @property
    def window(self) -> int:
        """Return the elements of the filter window of one channel."""
        return self.conv.kernel_h * self.conv.kernel_w

    @property
    def strided(self) -> bool:
        """Return whether the window moves by more than one element."""
        return self.conv.stride_h > 1 or self.conv.stride_w > 1

    @cached_property
    def conv_class(self) -> str:
        """Return the class: one of `CLASSES`, or `GROUPED`."""
        if self.conv.groups > 1:
            return GROUPED
        if self.conv.in_channels <= FIRST_CHANNELS:
            return "first"
        if self.strided:
            return "1x1-strided" if self.window == 1 else "strided"
        if self.window == 1:
            return "1x1"
        if self.window > 9:
            return "large"
        return "3x3-wide" if min(self.conv.in_channels, self.conv.out_channels) >= WIDE_CHANNELS else "3x3"

    @cached_property
    def with_paddings(self) -> tuple[ConvWork, ...]:
        """Return this CONV and those that can compute it, with channels padded to the minimum of another class.

        A CONV's time is at most that of its paddings, so that more channels or groups never make a CONV faster.
        """
        conv = self.conv
        if conv.groups > 1:
            return (self,)
        padded = [replace(conv, groups=2, in_channels=2 * conv.in_channels, out_channels=2 * conv.out_channels)]
        if self.conv_class == "first":
            padded.append(replace(conv, in_channels=FIRST_CHANNELS + 1))
        if self.conv_class == "3x3":
            channels, outputs = max(conv.in_channels, WIDE_CHANNELS), max(conv.out_channels, WIDE_CHANNELS)
            padded.append(replace(conv, in_channels=channels, out_channels=outputs))
        return (self, *(other for one in padded for other in ConvWork(one, self.batch).with_paddings))

    def product(self, pass_: Pass) -> MatmulWork:
        """Return the matrix product of a pass; backward-data of a strided CONV skips its zeros."""
        conv, groups = self.conv, self.conv.groups
        inputs, outputs = conv.in_channels / groups, conv.out_channels / groups
        pixels = self.batch * conv.out_h * conv.out_w
        if pass_ == "forward":
            return MatmulWork(pixels, outputs, inputs * self.window, groups)
        if pass_ == "backward_filter":
            return MatmulWork(inputs * self.window, outputs, pixels, groups)
        steps = conv.stride_h * conv.stride_w
        return MatmulWork(self.batch * conv.in_h * conv.in_w, inputs, outputs * self.window / steps, groups)

    def tiled_product(self, pass_: Pass) -> MatmulWork:
        """Return the product under Winograd's F(2x2, 3x3), whose tiles of 2 x 2 elements overhang odd extents."""
        if self.conv_class not in WINOGRAD_CLASSES or pass_ == "backward_filter":
            return self.product(pass_)
        conv, product = self.conv, self.product(pass_)
        height, width = (conv.out_h, conv.out_w) if pass_ == "forward" else (conv.in_h, conv.in_w)
        return replace(product, rows=self.batch * (height + height % 2) * (width + width % 2))
