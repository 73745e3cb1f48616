"""Ratios of tensors: layouts, counted elements, refused arguments."""

from __future__ import annotations

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.compress import compressed_bits
from buddysim.compress.layouts import LAYOUTS
from buddysim.compress.tensors import density, in_layout, tensor_ratios
from tests.compress.tensors import relu_map


def test_layouts_are_orders_of_axes() -> None:
    tensor = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    assert in_layout(tensor, "NCHW").shape == (2, 3, 4, 5)
    assert in_layout(tensor, "NHWC").shape == (2, 4, 5, 3)
    assert in_layout(tensor, "CHWN").shape == (3, 4, 5, 2)
    assert in_layout(tensor, "CHWN")[2, 3, 4, 1] == tensor[1, 2, 3, 4]
    features = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert in_layout(features, "NHWC").tolist() == features.tolist()
    assert in_layout(features, "CHWN").tolist() == features.T.tolist()


def test_zvc_is_the_same_for_every_layout() -> None:
    tensor = relu_map((4, 16, 8, 8), 0.4, seed=1)
    ratios = tensor_ratios(tensor, windows=(4096, 65536), algorithms=("zvc",))
    assert [(r.layout, r.window) for r in ratios] == [
        (layout, window) for layout in LAYOUTS for window in (4096, 65536)
    ]
    assert len({r.bits for r in ratios}) == 1
    expected = 1 / (density(tensor) + 1 / 32)
    assert ratios[0].ratio == pytest.approx(expected)
    assert ratios[0].ratio_without_mask == pytest.approx(1 / density(tensor))


def test_each_is_what_its_compressor_says() -> None:
    tensor = relu_map((2, 5, 7, 3), 0.5, seed=2)
    for ratio in tensor_ratios(tensor, windows=(256,)):
        bits = compressed_bits(in_layout(tensor, ratio.layout), ratio.algorithm, window=256).sum()
        assert (ratio.bits, ratio.raw_bytes) == (bits, tensor.nbytes)


def test_clustered_zeros_help_run_lengths_in_the_layout_that_keeps_them_together() -> None:
    rng = np.random.default_rng(3)
    live = rng.random((8, 16, 1, 1)) < 0.3  # whole channels are zero
    tensor = (np.abs(rng.standard_normal((8, 16, 12, 12))) * live).astype(np.float32)
    by = {r.layout: r.ratio for r in tensor_ratios(tensor, algorithms=("rle",))}
    assert by["NCHW"] > by["NHWC"]


def test_zeros_only() -> None:
    (ratio,) = tensor_ratios(np.zeros((1, 1, 32, 32), np.float32), ["NCHW"], algorithms=["zvc"])
    assert ratio.ratio == 32
    assert ratio.ratio_without_mask == float("inf")
    assert density(np.array([-0.0, 0.0], np.float32)) == 0.5


def test_words_of_other_sizes() -> None:
    (ratio,) = tensor_ratios(np.ones((1, 1, 4, 32), np.float16), ["NCHW"], algorithms=["zvc"])
    assert ratio.ratio == 16 / 17


def test_what_is_no_feature_map_is_refused() -> None:
    with pytest.raises(BuddysimError, match="tensor of 3 axes"):
        tensor_ratios(np.zeros((2, 2, 2), np.float32))
    with pytest.raises(BuddysimError, match="layout 'NWHC': expected one of NCHW, NHWC, CHWN"):
        tensor_ratios(np.zeros((2, 2, 2, 2), np.float32), ["NWHC"])
    with pytest.raises(BuddysimError, match="word_bits 64"):
        tensor_ratios(np.zeros((2, 2, 2, 2)), algorithms=["zvc"])
