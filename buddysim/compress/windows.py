"""Windows: the pieces of a tensor that are compressed independently of each other."""

from __future__ import annotations

from buddysim.base.errors import BuddysimError

#: Default window of the compressors of tensors in bytes (cDMA, Sec. VII-A).
TENSOR_WINDOW = 4096
#: The longest window (cDMA studied windows up to this).
LONGEST_WINDOW = 65536


def check_window(algorithm: str, window: int, word_bytes: int) -> None:
    """Refuses a window that is no multiple of the word size, or too long."""
    if not word_bytes <= window <= LONGEST_WINDOW or window % word_bytes:
        raise BuddysimError(
            f"{algorithm}: window {window} B: expected a multiple of {word_bytes} B, at most {LONGEST_WINDOW} B"
        )


def check_length(algorithm: str, nbytes: int, word_bytes: int) -> None:
    """Refuses data that isn't made of whole words."""
    if nbytes % word_bytes:
        raise BuddysimError(f"{algorithm}: data of {nbytes} B: expected a multiple of {word_bytes} B (the word size)")


def window_count(nbytes: int, window: int) -> int:
    """Number of windows in `nbytes` bytes of data; the last one may be short."""
    return -(-nbytes // window)
