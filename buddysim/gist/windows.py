"""Windows of a max pooling layer, for the positions of their largest elements."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.base.errors import BuddysimError

#: Most elements of a window whose position fits into 4 bits.
MAX_WINDOW = 16


@dataclass(frozen=True)
class Windows:
    """A max pooling layer over planes of `height` x `width` elements.

    Attributes
    ----------
    out_height, out_width : windows of a plane
    kernel, stride, pad, dilation : height and width of each
    """

    height: int
    width: int
    out_height: int
    out_width: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        if self.kernel[0] * self.kernel[1] > MAX_WINDOW:
            raise BuddysimError(
                f"window of {self.kernel[0]} x {self.kernel[1]}: too large: expected at most {MAX_WINDOW} elements "
                "(a position has 4 bits)"
            )

    @property
    def plane(self) -> int:
        """Elements of an input plane."""
        return self.height * self.width

    @property
    def out_plane(self) -> int:
        """Windows of a plane."""
        return self.out_height * self.out_width


def mask_bytes(count: int) -> int:
    """Bytes of a mask with a bit per element."""
    return -(-count // 8)


def positions_bytes(count: int) -> int:
    """Bytes of positions with 4 bits per window."""
    return -(-count // 2)
