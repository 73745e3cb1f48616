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
    doubled.run(func, args, {}, result, number_of)
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


def test_products_of_groups_in_single_precision() -> None:
    """PyTorch's shape function takes half precision alone; a weight's gradient has a product for each group."""
    ends = torch.tensor([2, 4, 8], dtype=torch.int32)
    grouped = torch.ops.aten._grouped_mm.default
    doubled, results = run(grouped, torch.ones(16, BATCH), torch.ones(BATCH, 24), ends)
    assert [doubled.shape_of(number) for number in results] == [None]  # (3, 16, 24)
    assert not doubled.by_extents
    doubled, results = run(grouped, torch.ones(BATCH, 16), torch.ones(3, 16, 24), ends)
    assert [(doubled.shape_of(number), doubled.tensors[number].dtype) for number in results] == [
        ((16, 24), torch.float32)
    ]


def test_an_operator_without_a_shape_function_grows_with_its_inputs() -> None:
    doubled, results = run(torch.ops.aten.nonzero.default, torch.ones(BATCH, 3))
    assert [doubled.shape_of(number) for number in results] == [(2 * 3 * BATCH, 2)]
    assert doubled.by_extents == {"nonzero"}
