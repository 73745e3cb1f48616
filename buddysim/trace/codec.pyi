import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

class CodecError(ValueError): ...

FAULTS: dict[int, tuple[str, str]]

def check_records(
    blocks: npt.NDArray[np.void],
    warps: npt.NDArray[np.void],
    ops: npt.NDArray[np.void],
    lines: npt.NDArray[np.uint64],
    grid_blocks: int = ...,
    block_warps: int = ...,
) -> None: ...
def count_instructions(warps: npt.NDArray[np.void], ops: npt.NDArray[np.void]) -> tuple[int, int]: ...
def encode_columns(
    blocks: npt.NDArray[np.void],
    warps: npt.NDArray[np.void],
    ops: npt.NDArray[np.void],
    lines: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint8], int, int, int]: ...
def decode_columns(
    columns: Buffer | npt.NDArray[np.uint8],
    n_blocks: int,
    n_warps: int,
    n_ops: int,
    n_lines: int,
    n_op_shapes: int,
    n_warp_shapes: int,
    n_wide: int,
    grid_blocks: int = ...,
    block_warps: int = ...,
    version: int = ...,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.uint64]]: ...
