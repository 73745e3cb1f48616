"""The format of a result of two formats, as ``torch.promote_types`` has it."""

from __future__ import annotations

import pytest

from buddysim.training.autograd.dtypes import (
    DType,
    bfloat16,
    bool8,
    float16,
    float32,
    float64,
    int32,
    int64,
    promoted,
)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (float16, bfloat16, float32),
        (float16, float16, float16),
        (float16, float32, float32),
        (float64, bfloat16, float64),
        (int64, bfloat16, bfloat16),
        (int32, int64, int64),
        (bool8, int32, int32),
    ],
)
def test_formats_are_promoted(first: DType, second: DType, expected: DType) -> None:
    assert promoted(first, second) is promoted(second, first) is expected
