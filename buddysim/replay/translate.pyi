import numpy as np
from numpy.typing import NDArray

def translate_lines(lines: NDArray[np.uint64], table: NDArray[np.int64]) -> int: ...
