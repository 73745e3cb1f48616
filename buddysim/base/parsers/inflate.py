"""A stream of zlib, decompressed up to a size."""

from __future__ import annotations

from typing import NamedTuple

from buddysim.base.parsers.refusal import refusal


class Inflated(NamedTuple):
    """What a stream holds.

    Attributes
    ----------
    data : of at most the requested size
    is_whole : whether the stream ended, its checksum right
    used : bytes of the stream
    """

    data: bytes
    is_whole: bool
    used: int


def inflated(stream: bytes, most: int, begin: str) -> Inflated:
    """Decompress a stream that begins there; more than `most` bytes of data are left out."""
    import zlib

    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(stream, most + 1)
        if not inflater.eof and len(data) <= most:  # all data are there, the checksum perhaps not yet read
            data += inflater.decompress(inflater.unconsumed_tail, 1)
    except Exception as error:
        raise refusal(error, begin) from None
    return Inflated(data, inflater.eof, len(stream) - len(inflater.unused_data))
