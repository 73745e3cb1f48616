import numpy as np
from numpy.typing import NDArray

from buddysim.compress.compressors import Data

ORDER: int
REFERENCE: str
TENSORS_ONLY: bool
OPTIONS: dict[str, object]

def provenance() -> str: ...
def compressed_bits(
    data: Data, *, index_bytes: int = 4, columns: int = 0, window: int = 4096, raw_fallback: bool = False
) -> NDArray[np.uint32]: ...
def compress(
    data: Data, *, index_bytes: int = 4, columns: int = 0, window: int = 4096, raw_fallback: bool = False
) -> bytes: ...
def decompress(
    payload: Data,
    nbytes: int,
    *,
    index_bytes: int = 4,
    columns: int = 0,
    window: int = 4096,
    raw_fallback: bool = False,
) -> bytes: ...
