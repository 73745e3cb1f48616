"""Products of operators, by their shapes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from buddysim.training.networks.from_torch.operation_work import products_of  # noqa: E402


def test_products_have_the_shapes_of_their_operands() -> None:
    """Rows, columns, what is summed over, and how many."""
    aten = torch.ops.aten
    x, y, bias = (torch.empty(shape, device="meta") for shape in ((3, 5), (5, 7), (7,)))
    many, others = (torch.empty(shape, device="meta") for shape in ((2, 3, 5), (2, 5, 7)))
    assert [tuple(one) for one in products_of(aten.mm.default, (x, y))] == [(3, 7, 5, 1)]
    assert [tuple(one) for one in products_of(aten.addmm.default, (bias, x, y))] == [(3, 7, 5, 1)]
    assert [tuple(one) for one in products_of(aten.bmm.default, (many, others))] == [(3, 7, 5, 2)]
    assert products_of(aten.relu.default, (x,)) == ()
