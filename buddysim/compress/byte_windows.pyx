"""Tensors in windows whose codes are whole bytes: the loops over windows, around what a codec does with one of them."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.compress.windows import window_count


cdef object code_bits(const uint8_t[::1] data, const ByteCodec* codec):
    """Size of every window in bits, its flag included where there is one: a uint32 array."""
    cdef int64_t i, nbytes, size, total = data.shape[0], windows = window_count(total, codec.window)
    bits = np.empty(windows, dtype=np.uint32)
    cdef uint32_t[::1] out = bits
    with nogil:
        for i in range(windows):
            nbytes = min(codec.window, total - i * codec.window)
            size = codec.size(&data[i * codec.window], nbytes, codec.shape)
            out[i] = <uint32_t>(min(size, nbytes) * 8 + 1 if codec.raw_fallback else size * 8)
    return bits


cdef object encoded(const uint8_t[::1] data, const ByteCodec* codec):
    """Return the windows' codes in sequence, padded to whole bytes; with `raw_fallback` flags precede them."""
    sizes = code_bits(data, codec)
    cdef int64_t i, nbytes, windows = len(sizes), total = data.shape[0]
    payload = PyBytes_FromStringAndSize(NULL, (int(sizes.sum(dtype=np.int64)) + 7) // 8)
    cdef uint8_t* flags = <uint8_t*>PyBytes_AS_STRING(payload)
    cdef uint8_t* out = flags
    cdef const uint8_t* window
    if not windows:
        return payload
    with nogil:
        if codec.raw_fallback:
            memset(flags, 0, (windows + 7) // 8)
            out += (windows + 7) // 8
        for i in range(windows):
            window, nbytes = &data[i * codec.window], min(codec.window, total - i * codec.window)
            if codec.raw_fallback and codec.size(window, nbytes, codec.shape) > nbytes:
                flags[i >> 3] |= <uint8_t>(1 << (i & 7))
                memcpy(out, window, nbytes)
                out += nbytes
            else:
                out += codec.encode(window, nbytes, codec.shape, out)
    return payload


cdef object decoded(str name, const uint8_t[::1] payload, int64_t nbytes, const ByteCodec* codec):
    """Return the data of a payload. A payload that `encoded` cannot return is a `BuddysimError`."""
    cdef bint raw
    cdef int64_t i, taken, size, length = payload.shape[0], windows = window_count(nbytes, codec.window)
    cdef int64_t at = 0, failed = -1
    data = PyBytes_FromStringAndSize(NULL, nbytes)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(data)
    cdef const uint8_t* code = &payload[0] if length else NULL
    with nogil:
        if codec.raw_fallback:
            at = (windows + 7) // 8
            if at > length or (windows & 7 and code[at - 1] >> (windows & 7)):
                failed = 0
        for i in range(windows):
            if failed >= 0:
                break
            size = min(codec.window, nbytes - i * codec.window)
            raw = codec.raw_fallback and code[i >> 3] >> (i & 7) & 1
            if raw:
                taken = size if length - at >= size else -1
                if taken > 0:
                    memcpy(out, code + at, size)
            else:
                taken = codec.decode(code + at, length - at, size, codec.shape, out)
            if taken < 0 or codec.raw_fallback and raw != (codec.size(out, size, codec.shape) > size):
                failed = i
            else:
                at += taken
                out += size
    if failed >= 0:
        raise BuddysimError(f"{name}: payload: window {failed} is corrupt, from byte {at} of {length} on")
    if at != length:
        raise BuddysimError(f"{name}: payload of {length} bytes: {nbytes} bytes of data end at byte {at} (corrupt)")
    return data
