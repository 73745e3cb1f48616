"""Operators at twice the batch, where the batch equals other numbers of the model, and in mixed precision."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from buddysim.capture.torch.doubled_batch import DoubledBatch  # noqa: E402

BATCH = 8


def run(func: Any, *args: Any) -> tuple[DoubledBatch, list[int]]:
    """Run an operator on tensors of the batch; return what is known, and the numbers of the results."""
    tensors: list[Any] = []

    def number_of(tensor: Any) -> int:
        if not any(tensor is one for one in tensors):
            tensors.append(tensor)
        return next(number for number, one in enumerate(tensors) if one is tensor)

    doubled = DoubledBatch(BATCH, lambda number: True)
    for one in args:
        if isinstance(one, torch.Tensor):
            doubled.add_input(number_of(one), one)
    result = func(*args)
    assert doubled.run(func, args, {}, result, number_of) is not None
    return doubled, [number_of(one) for one in (result if isinstance(result, tuple) else (result,)) if one is not None]


def test_as_many_groups_as_samples_stay_as_many() -> None:
    arguments = torch.ones(BATCH, 32, 4, 4), torch.ones(32), torch.ones(32), BATCH, 32, 16, BATCH, 1e-5
    doubled, results = run(torch.ops.aten.native_group_norm.default, *arguments)
    assert [doubled.shape_of(number) for number in results] == [(16, 32, 4, 4), (16, 8), (16, 8)]


def test_a_result_keeps_the_format_that_the_operator_returns() -> None:
    """PyTorch's shape function of this backward pass returns single precision for a half-precision gradient."""
    image, sums = torch.ones(BATCH, 32, 4, 4, dtype=torch.bfloat16), torch.ones(BATCH, 4)
    settings = BATCH, 32, 16, 4, [True, True, True]
    backward = torch.ops.aten.native_group_norm_backward.default
    doubled, (first, *_) = run(backward, image, image, sums, sums, torch.ones(32), *settings)
    assert doubled.tensors[first].dtype == torch.bfloat16
