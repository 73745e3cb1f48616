import numpy as np
from numpy.typing import NDArray

from buddysim.compress.compressors import Data

ORDER: int
REFERENCE: str
OPTIONS: dict[str, object]
PATHS: tuple[str, ...]

def best_path() -> str: ...
def compressed_bits(data: Data, *, path: str | None = None) -> NDArray[np.uint32]: ...
def compress(data: Data) -> bytes: ...
def decompress(payload: Data, nbytes: int) -> bytes: ...
