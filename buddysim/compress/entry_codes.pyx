"""Both directions of a compressor of entries whose codes are one stream of bits."""
from libc.stdint cimport int64_t, uint8_t

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.compress.bit_stream cimport BitStream

cdef enum:
    ENTRY = 128                 # bytes


cdef bytes compress_entries(const EntryCode* code, const uint8_t[::1] data):
    """Return the codes of whole entries in sequence, with zero bits up to the last byte's end."""
    cdef int64_t i, entries = data.shape[0] // ENTRY
    storage = np.zeros((entries * code.max_bits + 7) // 8, dtype=np.uint8)
    cdef uint8_t[::1] payload = storage
    cdef BitStream stream
    if not entries:
        return b""
    stream.bytes, stream.position, stream.end = &payload[0], 0, payload.shape[0] * 8
    with nogil:
        for i in range(entries):
            code.encode(&data[i * ENTRY], code.setting, &stream)
    return storage[: (stream.position + 7) // 8].tobytes()


cdef bytes decompress_entries(const EntryCode* code, const uint8_t[::1] payload, int64_t nbytes):
    """Return the data of a payload. A payload that `compress_entries` cannot return is a `BuddysimError`."""
    cdef int64_t i, entries = nbytes // ENTRY, length = payload.shape[0], failed = -1
    cdef BitStream stream
    name = code.name.decode()
    if entries > length * 8 // code.min_bits:
        raise BuddysimError(f"{name}: payload of {length} bytes: too short for {nbytes} bytes of data")
    data = np.empty(nbytes, dtype=np.uint8)
    cdef uint8_t[::1] out = data
    if entries:
        # Decoding doesn't write to the stream.
        stream.bytes, stream.position, stream.end = <uint8_t*>&payload[0], 0, length * 8
        with nogil:
            for i in range(entries):
                if not code.decode(&stream, code.setting, &out[i * ENTRY]):
                    failed = i
                    break
        if failed >= 0:
            raise BuddysimError(
                f"{name}: payload: entry {failed} is corrupt near bit {stream.position} of {length * 8}"
            )
    if compress_entries(code, data) != bytes(payload):
        raise BuddysimError(f"{name}: payload of {length} bytes: not what {nbytes} bytes of data compress to (corrupt)")
    return data.tobytes()
