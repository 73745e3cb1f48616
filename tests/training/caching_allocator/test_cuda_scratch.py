"""Memory that CUDA kernels have for themselves: of softmax' gradient, and of fused RMS norm's."""

from __future__ import annotations

import pytest

from buddysim.training.autograd import Tape
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Parameter
from buddysim.training.autograd.records import CUDA_SCRATCH

ROWS, COLUMNS = 8, 32
BYTES = 4 * ROWS * COLUMNS


@pytest.mark.parametrize(("name", "scratch"), [("softmax", [BYTES]), ("log_softmax", [])])
def test_softmax_has_the_product_of_gradient_and_result(name: str, scratch: list[int]) -> None:
    with Tape() as tape:
        x = Parameter((ROWS, COLUMNS), float32)
        (getattr(F, name)(x, -1)).backward(tape.empty((ROWS, COLUMNS), float32, "gradient"))
    made = [one for one in tape.storages if one.producer == CUDA_SCRATCH]
    assert [one.bytes for one in made] == scratch
    assert all(one.freed is not None for one in made)


@pytest.mark.parametrize("repeated", [False, True])
def test_fused_rms_norm_copies_a_gradient_that_is_one_number_repeated(repeated: bool) -> None:
    with Tape() as tape:
        x, weight = Parameter((ROWS, COLUMNS), float32), Parameter((COLUMNS,), float32)
        result = F.rms_norm(x, (COLUMNS,), weight)
        if repeated:
            result.sum().backward()
        else:
            result.backward(tape.empty((ROWS, COLUMNS), float32, "gradient"))
    assert [one.bytes for one in tape.storages if one.producer == CUDA_SCRATCH] == [BYTES] * repeated
