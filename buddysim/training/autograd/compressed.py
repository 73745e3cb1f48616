"""Saved tensors in fewer bits between their forward and backward use: Gist's delayed precision reduction.

(Jain et al., ISCA 2018, section IV-B.) When autograd saves a tensor, a kernel writes its values in fewer bits; a node
that reads it decodes a copy first. A tensor that several nodes save is encoded once. Weights, integers and what is no
wider than the code stay as they are.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from buddysim.training.autograd.dtypes import DType, uint8
from buddysim.training.autograd.layout import Shape, is_dense
from buddysim.training.autograd.saved_hooks import SavedTensorHooks
from buddysim.training.autograd.tensor import Tensor

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape

#: Bytes of a number of values, by the bits of one: three of 10 bits fit into four bytes.
CODE_BYTES = {16: (2, 1), 10: (4, 3), 8: (1, 1)}


def code_bytes(values: int, bits: int) -> int:
    """Return the bytes of a number of values."""
    size, together = CODE_BYTES[bits]
    return -(-values // together) * size


class _Code:
    """A tensor in fewer bits, with its own shape, layout and format."""

    def __init__(self, shape: Shape, strides: Shape | None, dtype: DType, code: Tensor) -> None:
        self.shape, self.strides, self.dtype, self.code = shape, strides, dtype, code


class CompressedTensors(SavedTensorHooks):
    """Encodes what autograd saves.

    Parameters
    ----------
    bits : of a value, of `CODE_BYTES`
    """

    def __init__(self, tape: Tape, bits: int) -> None:
        self.tape, self.bits = tape, bits
        self.codes: WeakValueDictionary[tuple[object, ...], _Code] = WeakValueDictionary()

    def pack(self, tensor: Tensor, before: bool) -> Tensor | _Code:
        values, record = prod(tensor.shape), tensor.storage.record
        size = code_bytes(values, self.bits)
        if (
            record.kind in ("parameter", "buffer", "gathered")
            or not tensor.dtype.is_floating_point
            or size >= values * tensor.dtype.size
        ):
            return tensor if before else tensor.detach()
        key = record.number, tensor.offset, tensor.shape, tensor.strides, tensor.dtype.name
        packed = self.codes.get(key)
        if packed is None:
            code = self.tape.empty((size,), uint8, "encode", kind="activation")
            self.tape.launch("encode", (tensor,), (code,))
            strides = tensor.strides if is_dense(tensor.shape, tensor.strides) else None
            packed = self.codes[key] = _Code(tensor.shape, strides, tensor.dtype, code)
        return packed

    def unpack(self, packed: Tensor | _Code) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        tensor = self.tape.empty(packed.shape, packed.dtype, "decode", packed.strides, kind="activation")
        self.tape.launch("decode", (packed.code,), (tensor,))
        return tensor
