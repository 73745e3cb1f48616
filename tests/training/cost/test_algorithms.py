"""Workspace by hand and against published logs of cuDNN; algorithms by version."""

from __future__ import annotations

import pytest

from buddysim.training import Conv
from buddysim.training.cost.algorithms import ALGORITHMS, available, fft_tiles, padded_power_of_two
from buddysim.training.cost.work import PASSES, ConvWork
from buddysim.training.named_network import load_network

LENET_1 = ConvWork(Conv(1, 20, 28, 28, 24, 24, 5, 5, 1, 1, 0, 0), 1)
LENET_2 = ConvWork(Conv(20, 50, 12, 12, 8, 8, 5, 5, 1, 1, 0, 0), 1)
VGG_1_2 = ConvWork(Conv(64, 64, 224, 224, 224, 224, 3, 3, 1, 1, 1, 1), 32)
RESNET_2A = ConvWork(Conv(64, 64, 56, 56, 56, 56, 3, 3, 1, 1, 1, 1), 32)


def workspace(work: ConvWork, name: str) -> int:
    return ALGORITHMS[name].workspace(work)


@pytest.mark.parametrize(
    ("work", "name", "logged"),
    [
        # NVIDIA's mnistCUDNN sample, as printed in tensorflow/tensorflow issue 48117
        (LENET_1, "implicit_gemm", 0),
        (LENET_1, "gemm", 57_600),
        (LENET_1, "fft_tiling", 178_432),
        (LENET_2, "gemm", 128_000),
        (LENET_2, "fft_tiling", 4_656_640),
        # LBANN/lbann pull request 437: 256 KiB for res2a_branch2b of ResNet-50
        (RESNET_2A, "winograd", 256 * 1024),
    ],
)
def test_logs_of_cudnn_agree_to_the_byte(work: ConvWork, name: str, logged: int) -> None:
    assert workspace(work, name) == logged


def test_the_log_of_the_untiled_fft_agrees_roughly() -> None:
    """The tolerance covers cuDNN's own squares, which aren't powers of two: 184,784 B and 2,450,080 B in this log."""
    assert workspace(LENET_1, "fft") / 184_784 == pytest.approx(1, abs=0.05)
    assert 0.4 < workspace(LENET_2, "fft") / 2_450_080 < 1


def test_the_matrix_of_windows_grows_with_the_batch() -> None:
    """A 7x7 convolution of 10 images of 64 x 360 x 480 needs almost 20 GB (vlfeat/matconvnet issue 213)."""
    work = ConvWork(Conv(64, 11, 360, 480, 360, 480, 7, 7, 1, 1, 3, 3), 10)
    assert workspace(work, "gemm") == 10 * 64 * 49 * 360 * 480 * 4
    assert 19e9 < workspace(work, "gemm") < 22e9


def test_tiles_by_hand() -> None:
    """conv1_2 of VGG takes 8 x 8 tiles of 32 for 224 x 224 elements, as a tile gives 30 new ones."""
    assert fft_tiles(VGG_1_2) == 64
    assert fft_tiles(ConvWork(Conv(1, 1, 60, 30, 60, 30, 3, 3, 1, 1, 1, 1), 1)) == 2
    assert fft_tiles(ConvWork(Conv(1, 1, 61, 31, 61, 31, 3, 3, 1, 1, 1, 1), 1)) == 6
    assert fft_tiles(ConvWork(Conv(1, 1, 30, 28, 30, 28, 3, 5, 1, 1, 1, 2), 1)) == 1
    planes = 64 * (64 + 64) * 32 + 64 * 64
    assert workspace(VGG_1_2, "fft_tiling") == planes * 32 * 17 * 8
    assert workspace(VGG_1_2, "winograd_nonfused") == (56 * 56 * 32 * 128 + 64 * 64) * 36 * 4
    assert workspace(VGG_1_2, "fft") == (32 * 128 + 64 * 64) * 256 * 129 * 8
    assert workspace(VGG_1_2, "implicit_precomp_gemm") == 4 * (64 * 9 + 224 * 224)


@pytest.mark.parametrize(("extent", "padded"), [(1, 1), (2, 2), (3, 4), (8, 8), (9, 16), (226, 256)])
def test_padding(extent: int, padded: int) -> None:
    assert padded_power_of_two(extent) == padded


def names(work: ConvWork, version: int, pass_: str = "forward") -> set[str]:
    (known,) = (one for one in PASSES if one == pass_)
    return {algorithm.name for algorithm in available(work, known, version)}


def test_versions() -> None:
    """vDNN, section II-B: cuDNN 4 has six forward algorithms (one of them, direct, was never implemented)."""
    gemms = {"implicit_gemm", "implicit_precomp_gemm", "gemm"}
    assert names(RESNET_2A, 2) == gemms
    assert names(RESNET_2A, 3) == gemms | {"fft"}
    assert names(RESNET_2A, 4) == gemms | {"fft", "fft_tiling"}
    assert names(RESNET_2A, 5) == gemms | {"fft", "fft_tiling", "winograd", "winograd_nonfused"}
    assert "gemm" not in names(RESNET_2A, 7, "backward_data")
    assert "winograd" not in names(RESNET_2A, 7, "backward_filter")


def test_unusual_shapes_have_gemm_algorithms_alone() -> None:
    gemms = {"implicit_gemm", "implicit_precomp_gemm", "gemm"}
    strided = ConvWork(Conv(64, 64, 56, 56, 28, 28, 3, 3, 2, 2, 1, 1), 1)
    pointwise = ConvWork(Conv(64, 64, 56, 56, 56, 56, 1, 1, 1, 1, 0, 0), 1)
    dilated = ConvWork(Conv(64, 64, 56, 56, 52, 52, 3, 3, 1, 1, 0, 0, dilation_h=2, dilation_w=2), 1)
    huge = ConvWork(Conv(3, 8, 300, 300, 300, 300, 3, 3, 1, 1, 1, 1), 1)
    assert names(strided, 7) == names(pointwise, 7) == names(dilated, 7) == gemms
    assert "fft" not in names(huge, 7)
    assert "fft_tiling" in names(huge, 7)


@pytest.mark.parametrize("version", [2, 4, 7])
@pytest.mark.parametrize("network", ["vgg19", "googlenet", "mobilenet"])
def test_memory_optimal_algorithm_is_always_available(network: str, version: int) -> None:
    for layer in load_network(network).layers:
        if layer.conv is not None:
            for pass_ in PASSES:
                algorithms = {one.name: one for one in available(ConvWork(layer.conv, 3), pass_, version)}
                assert algorithms["implicit_gemm"].workspace(ConvWork(layer.conv, 3)) == 0
                assert all(one.workspace(ConvWork(layer.conv, 3)) >= 0 for one in algorithms.values())
