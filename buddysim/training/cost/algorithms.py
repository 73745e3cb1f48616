"""The CONV algorithms of cuDNN: the CONVs that each can compute, and its workspace.

One formula per algorithm gives the workspace, for every network. Where a published log of cuDNN states the bytes, a
test compares the formula with it (docs/explanation/layer-times.md). The memory-optimal algorithm is implicit GEMM,
which needs no workspace (Rhu et al., vDNN, Section II-B).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from buddysim.training.cost.work import ConvWork, Pass
from buddysim.training.networks.graph import ELEMENT_BYTES

COMPLEX_BYTES = 8
FFT_TILE = 32
LARGEST_FFT = 256
"""Largest extent, padding included, of feature maps that cuDNN's FFT algorithm accepts, in rows or columns."""


@dataclass(frozen=True)
class Algorithm:
    """Algorithm that computes a CONV.

    Attributes
    ----------
    since : first major version of cuDNN that has it
    passes : passes that it computes
    takes : returns whether it can compute a CONV
    workspace : returns the bytes that it needs in addition to X, Y and W
    """

    name: str
    meaning: str
    since: int
    passes: frozenset[Pass]
    takes: Callable[[ConvWork], bool]
    workspace: Callable[[ConvWork], int]


def padded_power_of_two(extent: int) -> int:
    """Return the smallest power of two that is at least `extent`."""
    return 1 << (extent - 1).bit_length()


def _anything(work: ConvWork) -> bool:
    return True


def _dense(work: ConvWork) -> bool:
    conv = work.conv
    return not work.strided and conv.dilation_h == conv.dilation_w == 1


def _winograd(work: ConvWork) -> bool:
    return _dense(work) and (work.conv.kernel_h, work.conv.kernel_w) == (3, 3)


def _fft(work: ConvWork) -> bool:
    conv = work.conv
    fits = max(conv.in_h + 2 * conv.pad_h, conv.in_w + 2 * conv.pad_w) <= LARGEST_FFT
    return _fft_window(work) and fits


def _fft_tiling(work: ConvWork) -> bool:
    return _fft_window(work) and max(work.conv.kernel_h, work.conv.kernel_w) <= FFT_TILE


def _fft_window(work: ConvWork) -> bool:
    conv = work.conv
    return _dense(work) and work.window > 1 and conv.pad_h < conv.kernel_h and conv.pad_w < conv.kernel_w


def _nothing(work: ConvWork) -> int:
    return 0


def _index_tables(work: ConvWork) -> int:
    """Bytes of offset tables: one 4-byte integer per inner element and per output pixel."""
    conv = work.conv
    return 4 * (conv.in_channels // conv.groups * work.window + conv.out_h * conv.out_w)


def _lowered_input(work: ConvWork) -> int:
    """Bytes of the whole matrix of windows, ``N C R S OH OW`` elements."""
    conv = work.conv
    return work.batch * conv.in_channels * work.window * conv.out_h * conv.out_w * ELEMENT_BYTES


def _planes(work: ConvWork, tiles: int) -> int:
    """Number of transformed tiles of X, Y and the filters."""
    conv = work.conv
    maps = work.batch * (conv.in_channels + conv.out_channels)
    return tiles * maps + conv.out_channels * (conv.in_channels // conv.groups)


def _spectra(work: ConvWork) -> int:
    """Bytes of X, Y and filters as half spectra of one padded square each."""
    side = _padded_side(work)
    return COMPLEX_BYTES * side * (side // 2 + 1) * _planes(work, 1)


def _padded_side(work: ConvWork) -> int:
    conv = work.conv
    return padded_power_of_two(max(conv.in_h + 2 * conv.pad_h, conv.in_w + 2 * conv.pad_w, 8))


def fft_tiles(work: ConvWork) -> int:
    """Return the number of 32 x 32 input tiles that cover one output feature map, overlapping by the window."""
    conv = work.conv
    across = -(-conv.out_w // (FFT_TILE + 1 - conv.kernel_w))
    down = -(-conv.out_h // (FFT_TILE + 1 - conv.kernel_h))
    return across * down


def fft_frequencies(work: ConvWork, name: str) -> tuple[int, int]:
    """Return the number of transformed tiles of one feature map, and complex numbers of one tile's half spectrum.

    Parameters
    ----------
    name : ``"fft"`` or ``"fft_tiling"``
    """
    if name == "fft_tiling":
        return fft_tiles(work), FFT_TILE * (FFT_TILE // 2 + 1)
    side = _padded_side(work)
    return 1, side * (side // 2 + 1)


def _tiled_spectra(work: ConvWork) -> int:
    """Bytes of X, Y and filters as half spectra of tiles."""
    return COMPLEX_BYTES * FFT_TILE * (FFT_TILE // 2 + 1) * _planes(work, fft_tiles(work))


def _transformed_filters(work: ConvWork) -> int:
    """Bytes of the filters as 4 x 4 tiles of F(2x2, 3x3); tiles of X and Y stay on chip."""
    conv = work.conv
    return 16 * ELEMENT_BYTES * conv.out_channels * (conv.in_channels // conv.groups)


def _transformed_maps(work: ConvWork) -> int:
    """Bytes of X, Y and filters as 6 x 6 tiles of F(4x4, 3x3)."""
    conv = work.conv
    tiles = -(-conv.out_h // 4) * -(-conv.out_w // 4)
    return 36 * ELEMENT_BYTES * _planes(work, tiles)


_ALL: frozenset[Pass] = frozenset(("forward", "backward_data", "backward_filter"))

MEMORY_OPTIMAL = "implicit_gemm"
FFTS = ("fft", "fft_tiling")

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(MEMORY_OPTIMAL, "windows gathered on chip, tile by tile", 2, _ALL, _anything, _nothing),
        Algorithm(
            "implicit_precomp_gemm", "the same with offsets computed beforehand", 2, _ALL, _anything, _index_tables
        ),
        Algorithm(
            "gemm", "the matrix of windows is written out", 2, frozenset(("forward",)), _anything, _lowered_input
        ),
        Algorithm("fft", "one transform per feature map", 3, _ALL, _fft, _spectra),
        Algorithm("fft_tiling", "transforms of 32 x 32 tiles", 4, _ALL, _fft_tiling, _tiled_spectra),
        Algorithm(
            "winograd",
            "F(2x2, 3x3), in one kernel",
            5,
            frozenset(("forward", "backward_data")),
            _winograd,
            _transformed_filters,
        ),
        Algorithm("winograd_nonfused", "F(4x4, 3x3), transforms written out", 5, _ALL, _winograd, _transformed_maps),
    )
}


def available(work: ConvWork, pass_: Pass, version: int) -> list[Algorithm]:
    """Return the algorithms of a cuDNN version that compute this pass.

    Parameters
    ----------
    version : major version of cuDNN
    """
    return [
        algorithm
        for algorithm in ALGORITHMS.values()
        if algorithm.since <= version and pass_ in algorithm.passes and algorithm.takes(work)
    ]
