import numpy as np
from numpy.typing import NDArray

def first_touched(
    lines: NDArray[np.uint64],
    firsts: NDArray[np.uint64],
    ends: NDArray[np.uint64],
    pieces: NDArray[np.int64],
    touched: NDArray[np.uint8],
    bits: int,
) -> NDArray[np.int64]: ...
