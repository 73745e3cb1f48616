"""Binarize: bits and positions known by hand, the kernels against the reference model, damaged payloads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.gist import binarize
from buddysim.gist.windows import Windows
from tests.gist.singles import arrays
from tests.reference.gist import ref_binarize


def test_bits_by_hand() -> None:
    values = np.array([1, 0, -0.0, -1, np.nan, -np.nan, np.inf, -np.inf, 1e-45], np.float32)
    mask = binarize.encode(values)
    assert mask.tolist() == [0b01110001, 1]
    assert binarize.backward(mask, np.arange(1, 10, dtype=np.float32)).tolist() == [1, 0, 0, 0, 5, 6, 7, 0, 9]


@given(arrays())
@settings(max_examples=200)
def test_bits_agree_with_the_reference_model(values: NDArray[np.float32]) -> None:
    mask = binarize.encode(values)
    assert mask.tobytes() == ref_binarize.encode(values.tolist())
    assert len(mask) == -(-len(values) // 8)
    gradient = np.arange(1, len(values) + 1, dtype=np.float32)
    assert binarize.backward(mask, gradient).tolist() == ref_binarize.backward(mask.tobytes(), gradient.tolist())
    assert np.array_equal(binarize.backward(mask, gradient) != 0, ~(values <= 0))


@given(arrays())
def test_gradients_pass_unchanged(gradient: NDArray[np.float32]) -> None:
    mask = np.full(-(-len(gradient) // 8), 255, np.uint8)
    assert binarize.backward(mask, gradient).tobytes() == gradient.tobytes()


@st.composite
def pools(draw: st.DrawFn) -> Windows:
    """Generate windows with strides, padding, dilation and partial ends, each partly inside the plane."""
    kernel = draw(st.sampled_from([(1, 1), (2, 2), (3, 3), (2, 3), (4, 4), (1, 16)]))
    dilation = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    pad_h, pad_w = (0 if dilation[axis] > 1 else draw(st.integers(0, kernel[axis] // 2)) for axis in range(2))
    pad = pad_h, pad_w
    stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    extents, steps = [], []
    for axis in range(2):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        extent = draw(st.integers(max(1, reach - 2 * pad[axis]), reach + 6))
        extents.append(extent)
        steps.append((extent + 2 * pad[axis] - reach) // stride[axis] + 1)
    return Windows(*extents, *steps, kernel, stride, pad, dilation)


few = st.sampled_from([0, 1 << 31, 0x3F800000, 0x40000000, 0xBF800000, 0x7FC00000, 0x7F800000, 0xFF800000, 1])


@given(pools(), st.data())
@settings(max_examples=200)
def test_positions_agree_with_the_reference_model(windows: Windows, data: st.DataObject) -> None:
    planes = data.draw(st.integers(0, 3))
    count = planes * windows.plane
    values = np.array(data.draw(st.lists(few, min_size=count, max_size=count)), np.uint32).view(np.float32)
    payload = binarize.max_positions(values, windows)
    assert payload.tobytes() == ref_binarize.max_positions(values.tolist(), windows)
    indices = binarize.indices_from_positions(payload, planes, windows)
    assert indices.tolist() == ref_binarize.indices_from_positions(payload.tobytes(), planes, windows)
    assert binarize.positions_from_indices(indices, windows).tobytes() == payload.tobytes()
    gradient = np.arange(planes * windows.out_plane, dtype=np.float32)
    input_gradient = binarize.pool_backward(payload, gradient, windows)
    assert input_gradient.tolist() == ref_binarize.pool_backward(payload.tobytes(), gradient.tolist(), windows)


def test_position_of_equal_elements_is_the_first_and_of_nans_the_last() -> None:
    windows = Windows(2, 4, 1, 2, (2, 2), (2, 2))
    values = np.array([1, 5, np.nan, 2, 5, 5, 3, np.nan], np.float32)
    assert binarize.max_positions(values, windows).tolist() == [1 | 3 << 4]


def test_bad_input_is_one_line() -> None:
    windows = Windows(4, 4, 2, 2, (2, 2), (2, 2))
    with pytest.raises(BuddysimError, match="window of 4 x 5: too large: expected at most 16 elements"):
        Windows(9, 9, 2, 2, (4, 5), (4, 4))
    with pytest.raises(BuddysimError, match="15 elements: expected whole planes of 16"):
        binarize.max_positions(np.zeros(15, np.float32), windows)
    with pytest.raises(BuddysimError, match="index 15: expected an element of window 0"):
        binarize.positions_from_indices(np.array([15, 2, 8, 10]), windows)
    with pytest.raises(BuddysimError, match="positions of 1 bytes: expected 2 for 1 planes"):
        binarize.indices_from_positions(bytes(1), 1, windows)
    with pytest.raises(BuddysimError, match="mask of 2 bytes: expected 1 for 8 elements"):
        binarize.backward(bytes(2), np.zeros(8, np.float32))
    with pytest.raises(BuddysimError, match="values int32: expected contiguous float32"):
        binarize.encode(np.zeros(8, np.int32))
    outside = Windows(3, 3, 2, 2, (2, 2), (2, 2), (1, 1))
    with pytest.raises(BuddysimError, match="position of window 1: expected one inside the plane"):
        binarize.pool_backward(bytes(2), np.zeros(4, np.float32), outside)
