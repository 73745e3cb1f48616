from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.compress.compressors import Data

REFERENCE: str

def encode(values: NDArray[np.float32], name: str) -> NDArray[np.uint8]: ...
def decode(payload: Data, name: str, count: int) -> NDArray[np.float32]: ...
def rounded(values: NDArray[Any], name: str) -> NDArray[np.float32]: ...
