from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.compress.compressors import Data

ORDER: int
REFERENCE: str
OPTIONS: dict[str, object]

def provenance() -> str: ...
def options_from_sample(blocks: Iterable[NDArray[Any]], *, table_words: int = 8) -> dict[str, object]: ...
def compressed_bits(data: Data, *, table_words: int = 8, table: tuple[int, ...] = ()) -> NDArray[np.uint32]: ...
def compress(data: Data, *, table_words: int = 8, table: tuple[int, ...] = ()) -> bytes: ...
def decompress(payload: Data, nbytes: int, *, table_words: int = 8, table: tuple[int, ...] = ()) -> bytes: ...
