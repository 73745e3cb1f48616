"""Matrix products of captured operators, by the shapes of their operands: a convolution as the products that it is."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from buddysim.training.autograd.records import Operand, Product

_TWO = ("mm", "bmm", "_grouped_mm")
_ADDED = ("addmm", "baddbmm", "addmv")
_CONVOLUTIONS = ("convolution", "_convolution", "mkldnn_convolution")


def products_of(name: str, reads: Sequence[Operand], writes: Sequence[Operand], flops: int) -> tuple[Product, ...]:
    """Return the products of an operator.

    Parameters
    ----------
    flops : that PyTorch counts; of an operator of no known form they are one product of its result
    """
    if name in _TWO and len(reads) > 1:
        return _product(reads[0], reads[1])
    if name in _ADDED and len(reads) > 2:
        return _product(reads[1], reads[2])
    if name in _CONVOLUTIONS and len(reads) > 1:
        return _convolution(writes[0], reads[1], flops)
    if name == "mkldnn_linear" and len(reads) > 1:
        rows = prod(reads[0].shape[:-1])
        return (Product(rows, reads[1].shape[0], reads[1].shape[-1], 1),)
    if name == "mkldnn_rnn_layer" and len(reads) > 2:
        return _recurrent(reads[0], reads[1], reads[2])
    if name == "mkldnn_rnn_layer_backward" and len(reads) > 2:
        once = _recurrent(reads[0], reads[1], reads[2])
        return once + once
    if flops and not name.startswith("_scaled_dot_product_"):
        return _by_flops(writes, flops)
    return ()


def _product(x: Operand, y: Operand) -> tuple[Product, ...]:
    if len(x.shape) < 2 or len(y.shape) < 2:
        return ()
    return (Product(x.shape[-2], y.shape[-1], x.shape[-1], prod(x.shape[:-2])),)


def _convolution(result: Operand, weight: Operand, flops: int) -> tuple[Product, ...]:
    """Positions by output channels by what a filter reads; of groups, and backwards, as many columns as FLOPs say."""
    positions, inner = result.shape[0] * prod(result.shape[2:]), prod(weight.shape[1:])
    columns = round(flops / (2 * positions * inner)) if flops else result.shape[1]
    return (Product(positions, max(1, columns), inner, 1),)


def _recurrent(x: Operand, input_weight: Operand, hidden_weight: Operand) -> tuple[Product, ...]:
    """An LSTM's layer: the inputs of all steps at once, then the hidden states step by step."""
    steps, samples = x.shape[0], prod(x.shape[1:-1])
    first = Product(steps * samples, input_weight.shape[0], x.shape[-1], 1)
    return (first, Product(samples, hidden_weight.shape[0], hidden_weight.shape[-1], steps))


def _by_flops(writes: Sequence[Operand], flops: int) -> tuple[Product, ...]:
    """One product of the largest result, with as many FLOPs."""
    shape = max((one.shape for one in writes), key=prod, default=())
    rows, columns = (prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (1, prod(shape))
    return (Product(max(1, rows), max(1, columns), max(1, round(flops / (2 * max(1, rows * columns)))), 1),)
