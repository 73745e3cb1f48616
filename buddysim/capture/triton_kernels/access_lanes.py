"""Elements of a tensor that the lanes of a warp access, for every instruction of an operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from buddysim.capture.triton_kernels.compiled_kernel import CompiledAccess
from buddysim.capture.triton_kernels.layouts import LANES

#: Bytes of a tensor that stand for a lane's, where one instruction copies a whole tensor.
_COPIED_LANE_BYTES: Final = 128


@dataclass(frozen=True)
class AccessLanes:
    """Lanes of an operation.

    Attributes
    ----------
    elements : int64 array (warps, operations of the trace, 32): position in the flattened tensor of a lane's first
        element
    owners : which lanes access memory: bool array that extends to the same shape
    bytes_per_lane : moved by each
    operations : of the trace for each instruction: 1, more where one instruction copies a whole tensor
    """

    elements: npt.NDArray[np.int64]
    owners: npt.NDArray[np.bool_]
    bytes_per_lane: int
    operations: int

    @classmethod
    def of(cls, access: CompiledAccess, warps: int) -> AccessLanes:
        """Return the lanes of an operation of a program with so many warps."""
        layout = access.layout
        if layout.kind in ("tensor_load", "tensor_store"):
            return cls._of_copy(access, warps)
        elements = layout.elements(warps, access.per_instruction)
        owners = np.ones((warps, LANES), np.bool_) if layout.kind == "load" else layout.owners(warps)
        return cls(elements, owners[:, None, :], access.bytes_per_lane, 1)

    @classmethod
    def _of_copy(cls, access: CompiledAccess, warps: int) -> AccessLanes:
        """Return the lanes of copies by one thread; its instructions divide the tensor's columns among them."""
        shape, size = access.layout.shape, access.layout.element_bytes
        columns = shape[-1] // len(access.lines)
        width = min(_COPIED_LANE_BYTES, columns * size)
        positions = np.arange(int(np.prod(shape))).reshape(-1, len(access.lines), columns)
        firsts = positions[:, :, :: width // size].transpose(1, 0, 2).reshape(len(access.lines), -1)
        operations = -(-firsts.shape[1] // LANES)
        elements = np.zeros((len(access.lines), operations * LANES), np.int64)
        elements[:, : firsts.shape[1]] = firsts
        owners = np.zeros((warps, len(access.lines), operations * LANES), np.bool_)
        owners[0, :, : firsts.shape[1]] = True
        parts = len(access.lines) * operations
        return cls(
            np.broadcast_to(elements.reshape(1, parts, LANES), (warps, parts, LANES)),
            owners.reshape(warps, parts, LANES),
            width,
            operations,
        )
