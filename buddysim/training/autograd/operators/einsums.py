"""Einstein sums of two tensors: a product of batches of matrices, with views and copies around it (``Linear.cpp``)."""

from __future__ import annotations

from math import prod

from buddysim.training.autograd.operators import products, reductions, views
from buddysim.training.autograd.tensor import Tensor


def einsum(equation: str, x: Tensor, y: Tensor) -> Tensor:
    """The sum over the labels that the result hasn't: ``"bij,bjk->bik"``.

    Each operand gets a dimension for each label, 1 where it has none: those of the result, then the summed ones.
    """
    x, y = x.storage.tape.lower(x), x.storage.tape.lower(y)
    operands, result = equation.split("->")
    first, second = operands.split(",")
    summed = sorted(set(first + second) - set(result))
    labels = result + "".join(summed)
    left, right = _with_all(x, first, labels), _with_all(y, second, labels)
    product = _product(left, right, range(len(result), len(labels)))
    return views.view(product, product.shape[: len(result)])


def _with_all(x: Tensor, own: str, labels: str) -> Tensor:
    order, added = [], len(own)
    for label in labels:
        if label in own:
            order.append(own.index(label))
        else:
            x = views.unsqueeze(x, len(x.shape))
            order.append(added)
            added += 1
    return views.permute(x, order)


def _product(left: Tensor, right: Tensor, summed: range) -> Tensor:
    """A product over summed dimensions, which stay as 1."""
    both: list[int] = []
    lefts: list[int] = []
    sums: list[int] = []
    rights: list[int] = []
    for dim in range(len(left.shape)):
        in_left, in_right = left.shape[dim] != 1, right.shape[dim] != 1
        if dim in summed:
            if in_left != in_right:
                left = reductions.sum_(left, dim, True) if in_left else left
                right = reductions.sum_(right, dim, True) if in_right else right
            sums.append(dim)
        elif in_left and in_right:
            both.append(dim)
        else:
            (lefts if in_left else rights).append(dim)
    if lefts and rights and lefts[-1] > rights[-1]:  # so that the result's dimensions are in order
        left, right, lefts, rights = right, left, rights, lefts
    extents = [prod([left.shape[one] for one in dims]) for dims in (both, lefts, sums)]
    wide = prod([right.shape[one] for one in rights])
    flat = views.reshape(views.permute(left, [*both, *lefts, *sums, *rights]), extents)
    turned = views.permute(right, [*both, *sums, *rights, *lefts])
    result = products.bmm(flat, views.reshape(turned, (extents[0], extents[2], wide)))
    shape = [left.shape[one] for one in (*both, *lefts)] + [1] * len(sums) + [right.shape[one] for one in rights]
    order = [*both, *lefts, *sums, *rights]
    return views.permute(views.view(result, shape), [order.index(one) for one in range(len(order))])
