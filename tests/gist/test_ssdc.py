"""SSDC: rows known by hand, the kernels against the reference model, sizes, damaged payloads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.gist import ssdc
from buddysim.gist.csr_rows import rows_bytes
from tests.gist.singles import arrays, patterns
from tests.reference.gist import ref_ssdc

sparse = st.one_of(st.just(0), st.just(0), patterns)
shapes = st.sampled_from([(256, 1), (1, 1), (7, 1), (256, 4), (1000, 4), (2**32 - 1, 4)])


def test_rows_by_hand() -> None:
    values = np.zeros(600, np.float32)
    values[[0, 255, 256, 599]] = 1, 2, -0.0, 3
    rows = ssdc.encode(values)
    assert rows.values.tolist() == [1, 2, 0, 3]
    assert rows.indices.tolist() == [0, 255, 0, 87]
    assert rows.ends.tolist() == [2, 3, 4]
    assert rows.nbytes == 4 * 5 + 3 * 4
    assert ssdc.decode(rows).tobytes() == values.tobytes()


@given(arrays(600, sparse), shapes)
@settings(max_examples=200)
def test_kernels_agree_with_the_reference_model_both_ways(values: NDArray[np.float32], shape: tuple[int, int]) -> None:
    columns, index_bytes = shape
    rows = ssdc.encode(values, columns, index_bytes)
    words = values.view(np.uint32).tolist()
    nonzeros, indices, ends = ref_ssdc.encode(words, columns)
    assert rows.values.view(np.uint32).tolist() == nonzeros
    assert rows.indices.tolist() == indices
    assert rows.ends.tolist() == ends
    assert rows.indices.itemsize == index_bytes
    assert rows.nbytes == rows_bytes(len(words), len(nonzeros), 4 * len(nonzeros), columns, index_bytes)
    assert ssdc.decode(rows).tobytes() == values.tobytes()
    assert ref_ssdc.decode(nonzeros, indices, ends, len(words), columns) == words


@given(arrays(600, sparse))
def test_payload_never_exceeds_its_bound(values: NDArray[np.float32]) -> None:
    """A payload takes at most 5/4 of the bytes of the values, and 4 B per row."""
    rows = ssdc.encode(values)
    assert rows.nbytes <= values.nbytes * 5 / 4 + 4 * -(-len(values) // 256)


@pytest.mark.parametrize(("index_bytes", "threshold"), [(1, 0.20), (4, 0.50)])
def test_rows_are_smaller_from_a_fraction_of_zeros_on(index_bytes: int, threshold: float) -> None:
    count = 256 * 1000
    for zeros, pays in ((threshold - 0.01, False), (threshold + 0.01, True)):
        values = np.ones(count, np.float32)
        values[: int(zeros * count)] = 0
        assert (ssdc.encode(values, 256, index_bytes).nbytes < values.nbytes) is pays


def test_bad_input_is_one_line() -> None:
    rows = ssdc.encode(np.array([0, 1, 0, 2], np.float32), 2)
    for wrong in (
        replace(rows, indices=rows.indices[:1]),
        replace(rows, indices=rows.indices + np.uint8(1)),
        replace(rows, ends=rows.ends[::-1].copy()),
        replace(rows, ends=rows.ends - np.uint32(1)),
        replace(rows, count=5),
    ):
        with pytest.raises(BuddysimError, match=r"ssdc: .*corrupt"):
            ssdc.decode(wrong)
    with pytest.raises(BuddysimError, match="columns 257: out of range: expected 1 to 256 with indices of 1 B"):
        ssdc.encode(np.ones(4, np.float32), 257)
    with pytest.raises(BuddysimError, match="index_bytes 2: unknown size: expected 1 or 4"):
        ssdc.encode(np.ones(4, np.float32), 4, 2)
    with pytest.raises(BuddysimError, match="values float64: expected contiguous 4-byte elements"):
        ssdc.encode(np.ones(4))
