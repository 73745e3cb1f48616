import numpy as np
from numpy.typing import NDArray

def expand(
    addresses: NDArray[np.uint64],
    active: NDArray[np.uint32],
    kinds: NDArray[np.uint8],
    widths: NDArray[np.uint8],
) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint8]]: ...
