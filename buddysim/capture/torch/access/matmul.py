"""Matrix products (cuBLAS's SGEMM)."""

from __future__ import annotations

from buddysim.capture.torch.access.launch import ModelledKernel
from buddysim.capture.torch.access.tensors import TensorView
from buddysim.capture.torch.access.tile_addresses import ElementAddresses, ProductAxis
from buddysim.capture.torch.access.tile_product import MatmulOperand, MatmulResult, TiledMatmul

_VECTOR = 4


def matmul(
    name: str, left: TensorView, right: TensorView, out: TensorView, bias: TensorView | None = None
) -> ModelledKernel:
    """Return the kernel of ``out[m, n] = left[m, k] x right[k, n]``, with a bias that broadcasts to `out`."""
    (m, k), n = left.shape, right.shape[1]
    along_k = _vector(left, 1)
    along_n = _vector(right, 1)
    first = MatmulOperand(_elements(left), *(("k", along_k) if left.strides[1] == 1 else ("tile", _vector(left, 0))))
    second = MatmulOperand(
        _elements(right).turned, *(("tile", along_n) if right.strides[1] == 1 else ("k", _vector(right, 0)))
    )
    added = None if bias is None else bias.broadcast_to(out.shape)
    wide = _vector(out, 1)
    if added is not None and not (added.strides[1] == 1 and added.is_aligned(4 * _VECTOR)):
        wide = 1
    result = MatmulResult(_elements(out), wide, bias=None if added is None else _elements(added))
    return TiledMatmul(name, m, n, k, first, second, result).launch()


def _elements(view: TensorView) -> ElementAddresses:
    """Return the addresses of a matrix's elements."""
    row, column = (stride * view.element_bytes for stride in view.strides)
    return ElementAddresses(
        view.address,
        ProductAxis(view.shape[0], lambda number: number * row),
        ProductAxis(view.shape[1], lambda number: number * column),
    )


def _vector(view: TensorView, axis: int) -> int:
    """Return the number of elements that a thread may take at once along an axis."""
    other = view.strides[1 - axis]
    fits = view.strides[axis] == 1 and other % _VECTOR == 0 and view.shape[axis] % _VECTOR == 0
    return _VECTOR if fits and view.is_aligned(4 * _VECTOR) else 1
