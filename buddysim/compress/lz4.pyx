"""LZ4 over the windows of a tensor, by the library of that name (the optional extra ``lz4``).

Sizes depend on the library: its version and the level are part of every result's provenance (`provenance`). There is no
reference model, as the payloads are the library's.
"""
from importlib import import_module

from libc.stdint cimport int64_t, uint8_t

from buddysim.base.errors import BuddysimError
from buddysim.compress.windows import TENSOR_WINDOW, bits_of, check_window, flags_of, joined, window_count

cdef enum:
    MAX_BYTES_PER_PAYLOAD_BYTE = 255         # bytes of data that a byte of code can stand for

ORDER = 45
#: An entry is too short for a dictionary: data are always windows.
TENSORS_ONLY = True

#: Options and their defaults. ``level``: 1 to 12 as the command ``lz4`` counts, 1 and 2 its fast compressor, from 3 on
#: its slow ones; ``window``: bytes compressed on their own; ``raw_fallback``: one bit more per window, and none gets
#: longer than that.
OPTIONS = {"level": 1, "window": TENSOR_WINDOW, "raw_fallback": False}

LAST_FAST_LEVEL = 2
LAST_LEVEL = 12


def available():
    """Whether the library is installed."""
    try:
        import_module("lz4.block")
    except ImportError:
        return False
    return True


def library():
    """Name and version of the library that makes the codes."""
    if not available():
        return "LZ4, not installed"
    return f"LZ4 {import_module('lz4').library_version_string()}"


def provenance():
    """The default level and the library, for results."""
    return f"level {OPTIONS['level']} of {library()}"


def compressed_bits(data, *, level=1, window=4096, raw_fallback=False):
    """Size of every window in bits, as a block of its own, without frame or checksum; any number of bytes."""
    return bits_of(_codes(data, level, window), len(data), window, raw_fallback)


def compress(data, *, level=1, window=4096, raw_fallback=False):
    """Return the windows' blocks in sequence, padded to whole bytes; with `raw_fallback` flags precede them."""
    return joined(_codes(data, level, window), data, window, raw_fallback)


def decompress(payload, int64_t nbytes, *, level=1, window=4096, raw_fallback=False):
    """Return the data of blocks of any version and level of LZ4; other bytes are a `BuddysimError`.

    Blocks carry no checksum: a damaged literal decodes to other data.
    """
    _check(level, window)
    block = _block()
    windows = window_count(nbytes, window)
    at = (windows + 7) // 8 if raw_fallback else 0
    if nbytes // MAX_BYTES_PER_PAYLOAD_BYTE > len(payload) or at > len(payload):
        raise BuddysimError(f"lz4: payload of {len(payload)} bytes: too short for {nbytes} bytes of data")
    flags = flags_of("lz4", payload, windows, raw_fallback)
    decoded_windows = []
    for i in range(windows):
        length = min(window, nbytes - i * window)
        size = length if flags[i] else block_bytes(payload[at:], length)
        if size < 0 or at + size > len(payload):
            raise BuddysimError(f"lz4: payload: window {i} from byte {at} on: no block of {length} bytes of data (corrupt)")
        decoded = payload[at : at + size].tobytes()
        if not flags[i]:
            try:
                decoded = block.decompress(decoded, uncompressed_size=length)
            except block.LZ4BlockError as error:
                raise BuddysimError(f"lz4: payload: window {i} from byte {at} on: {error} (corrupt)") from None
        if len(decoded) != length:
            raise BuddysimError(f"lz4: payload: window {i} has {len(decoded)} bytes: expected {length} (corrupt)")
        decoded_windows.append(decoded)
        at += size
    if at != len(payload):
        raise BuddysimError(f"lz4: payload of {len(payload)} bytes: {nbytes} bytes of data end at byte {at} (corrupt)")
    return b"".join(decoded_windows)


def _block():
    """The library's functions for blocks."""
    if not available():
        raise BuddysimError("lz4: needs the LZ4 library: pip install 'buddysim[lz4]'")
    return import_module("lz4.block")


def _check(level, window):
    if not 1 <= level <= LAST_LEVEL:
        raise BuddysimError(f"lz4: level {level}: expected 1 to {LAST_LEVEL}")
    check_window("lz4", window, 1)


def _codes(data, level, window):
    _check(level, window)
    block = _block()
    options = {"mode": "default"} if level <= LAST_FAST_LEVEL else {"mode": "high_compression", "compression": level}
    return [
        block.compress(data[first : first + window].data, store_size=False, **options)
        for first in range(0, len(data), window)
    ]


cdef int64_t block_bytes(const uint8_t[::1] code, int64_t nbytes):
    """Length of the block of `nbytes` of data that begins here, which it doesn't say itself; -1 where it has no end.

    A block is a row of sequences: literals and a match; its last one has literals only (lz4_Block_format.md).
    """
    cdef int64_t at = 0, done = 0, length = code.shape[0], literals, match
    cdef uint8_t token
    with nogil:
        while at < length:
            token = code[at]
            at += 1
            literals = take_length(&code[0], length, &at, token >> 4)
            if literals < 0 or literals > length - at or literals > nbytes - done:
                return -1
            at += literals
            done += literals
            if done == nbytes:
                return at
            at += 2             # how far back the match begins
            match = take_length(&code[0], length, &at, token & 15)
            if match < 0 or match + 4 > nbytes - done:
                return -1
            done += match + 4
    return -1


cdef int64_t take_length(const uint8_t* code, int64_t length, int64_t* at, int64_t count) noexcept nogil:
    """A length that begins with 4 bits of a token, and goes on in bytes where all of them are set; -1 without an end."""
    cdef uint8_t more = 255
    if count < 15:
        return count
    while more == 255:
        if at[0] >= length:
            return -1
        more = code[at[0]]
        at[0] += 1
        count += more
    return count
