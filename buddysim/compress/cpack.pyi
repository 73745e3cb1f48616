import numpy as np
from numpy.typing import NDArray

from buddysim.compress.compressors import Data

ORDER: int
REFERENCE: str
OPTIONS: dict[str, object]

def compressed_bits(data: Data) -> NDArray[np.uint32]: ...
def compress(data: Data) -> bytes: ...
def decompress(payload: Data, nbytes: int) -> bytes: ...
