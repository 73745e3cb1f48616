import numpy as np
from numpy.typing import NDArray

def coalesce(
    addresses: NDArray[np.int64], bytes_per_lane: NDArray[np.uint8], stores: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]: ...
