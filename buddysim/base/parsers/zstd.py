"""Frames of zstd, whose stated size is compared with what is expected before memory is taken for it."""

from __future__ import annotations

import threading
from typing import Any

from buddysim.base.parsers.refusal import refusal

BEST_RATIO = 1 << 15
"""Bytes that a byte of a frame may hold: a block of 128 KiB takes at least 4 bytes."""
_local = threading.local()


def frame_bytes(frame: bytes | memoryview, begin: str) -> int:
    """Return the size that a frame states; -1 where it states none."""
    import zstandard

    try:
        return int(zstandard.frame_content_size(frame))
    except Exception as error:
        raise refusal(error, begin) from None


def decompressed(frame: bytes | memoryview, begin: str) -> bytes:
    """Return the content of one frame that states its size (`frame_bytes`)."""
    decompressor = _decompressor()
    try:
        data: bytes = decompressor.decompress(frame, allow_extra_data=False)
    except Exception as error:
        raise refusal(error, begin) from None
    return data


def _decompressor() -> Any:
    """The decompressor of this thread."""
    if not hasattr(_local, "decompressor"):
        import zstandard

        _local.decompressor = zstandard.ZstdDecompressor()
    return _local.decompressor
