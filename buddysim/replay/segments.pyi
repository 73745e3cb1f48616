import numpy as np
from numpy.typing import NDArray

def first_accessed(
    lines: NDArray[np.uint64],
    firsts: NDArray[np.uint64],
    ends: NDArray[np.uint64],
    segments: NDArray[np.int64],
    accessed: NDArray[np.uint8],
    bits: int,
) -> NDArray[np.int64]: ...
