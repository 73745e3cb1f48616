import numpy as np
from numpy.typing import NDArray

def fill_addresses(
    out: NDArray[np.int64],
    address: int,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    window: NDArray[np.int64],
    threads: NDArray[np.int64],
    blocks: NDArray[np.int64],
    advance: int,
) -> None: ...
