import numpy as np
from numpy.typing import NDArray

def allocation_class(ends: NDArray[np.uint64], seed: int, allocation: int) -> int: ...
def draw_classes(
    out: NDArray[np.uint8],
    ends: NDArray[np.uint64],
    seed: int,
    allocation: int,
    first_entry: int,
    outlier_pages: int,
    outlier_entries: int,
) -> None: ...
def fill_unsampled(classes: NDArray[np.uint8], page_entries: int, shift: int = 0) -> int: ...
