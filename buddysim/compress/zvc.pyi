import numpy as np
from numpy.typing import NDArray

from buddysim.compress.compressors import Data

ORDER: int
REFERENCE: str
MASK_BITS_PER_WORD: int
OPTIONS: dict[str, object]
PATHS: tuple[str, ...]

def best_path() -> str: ...
def fraction_of_density(density: float, masks: bool = True) -> float: ...
def compressed_bits(
    data: Data, *, word_bits: int = 32, window: int = 128, raw_fallback: bool = False
) -> NDArray[np.uint32]: ...
def compress(
    data: Data, *, word_bits: int = 32, window: int = 128, raw_fallback: bool = False, path: str | None = None
) -> bytes: ...
def decompress(
    payload: Data,
    nbytes: int,
    *,
    word_bits: int = 32,
    window: int = 128,
    raw_fallback: bool = False,
    path: str | None = None,
) -> bytes: ...
