import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_ADDRESS: int

def atomic_conflicts_of(addresses: ArrayLike, bytes_per_lane: int) -> int: ...
def bank_words_of(addresses: ArrayLike, bytes_per_lane: int) -> int: ...
def coalesce(
    addresses: ArrayLike, lanes: ArrayLike, bytes_per_lane: ArrayLike, is_store: ArrayLike
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]: ...
