"""Both directions of a compressor of entries whose codes are one stream of bits."""
from libc.stdint cimport int64_t, uint8_t

from buddysim.compress.bit_stream cimport BitStream

ctypedef void (*encode_entry_t)(const uint8_t* entry, const void* setting, BitStream* stream) noexcept nogil
ctypedef bint (*decode_entry_t)(BitStream* stream, const void* setting, uint8_t* entry) noexcept nogil


cdef struct EntryCode:
    const char* name            # of the compressor, for messages
    int64_t min_bits          # of any entry
    int64_t max_bits
    encode_entry_t encode       # appends one entry
    decode_entry_t decode       # takes one entry; False where the stream ends early or no entry has this code
    const void* setting         # what the compressor's options say; handed to both


cdef bytes compress_entries(const EntryCode* code, const uint8_t[::1] data)
cdef bytes decompress_entries(const EntryCode* code, const uint8_t[::1] payload, int64_t nbytes)
