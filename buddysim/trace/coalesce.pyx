"""Coalescing: from the addresses of a warp's active lanes to 128 B lines with sector masks.

The reference model is `tests/reference/trace/ref_coalesce.py`; both give the same lines in the same order.
"""
import numpy as np

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

cdef uint64_t HASH_FACTOR = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: spreads neighbours and strides

cdef uint8_t[16] SECTOR_COUNTS          # by sector mask
for sectors in range(16):
    SECTOR_COUNTS[sectors] = sectors.bit_count()

# A line word keeps address >> 7 in its upper 56 bits.
MAX_ADDRESS = (1 << 63) - 1


cdef inline uint32_t sectors_between(uint32_t first_byte, uint32_t last_byte) noexcept nogil:
    """Mask of the sectors that hold bytes first_byte..last_byte of a line."""
    return (2u << (last_byte >> SECTOR_BITS)) - (1u << (first_byte >> SECTOR_BITS))


cdef inline void cover(uint64_t* covered, uint32_t first_byte, uint32_t last_byte) noexcept nogil:
    """Mark bytes first_byte..last_byte of a line as written; `covered` has a bit per byte."""
    cdef uint64_t low = ~<uint64_t>0 << (first_byte & 63)
    cdef uint64_t high = ~<uint64_t>0 >> (63 - (last_byte & 63))
    if first_byte >> 6 == last_byte >> 6:
        covered[first_byte >> 6] |= low & high
    else:
        covered[0] |= low
        covered[1] |= high


cdef inline uint32_t whole_sectors(const uint64_t* covered) noexcept nogil:
    """Mask of the sectors all of whose bytes are covered."""
    cdef uint32_t mask = 0
    if <uint32_t>covered[0] == 0xFFFFFFFFu:
        mask |= 1
    if <uint32_t>(covered[0] >> 32) == 0xFFFFFFFFu:
        mask |= 2
    if <uint32_t>covered[1] == 0xFFFFFFFFu:
        mask |= 4
    if <uint32_t>(covered[1] >> 32) == 0xFFFFFFFFu:
        mask |= 8
    return mask


cdef int coalesce_op(
    const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, bint is_store, uint64_t* lines
) noexcept nogil:
    """Write the op's lines, in the order in which lanes first access them, and return their number.

    There are at most MAX_LANES lanes of at most MAX_BYTES_PER_LANE bytes, all below MAX_ADDRESS. `lines` has
    MAX_OP_LINES elements.
    """
    cdef uint64_t numbers[MAX_OP_LINES]
    cdef uint32_t sectors[MAX_OP_LINES]
    cdef uint64_t covered[MAX_OP_LINES][2]
    cdef uint8_t slots[128]     # by hash of the line number: 1 + index of a line, 0 where free
    cdef int n_lines = 0, here = 0, lane, line
    cdef uint32_t first_byte, last_byte, remaining, slot
    cdef uint64_t address, number
    memset(slots, 0, sizeof(slots))
    for lane in range(n_lanes):
        address = addresses[lane]
        remaining = bytes_per_lane
        while remaining:
            number = address >> LINE_BITS
            first_byte = <uint32_t>address & 127
            last_byte = first_byte + remaining - 1
            if last_byte > 127:
                last_byte = 127
            if n_lines == 0 or numbers[here] != number:
                slot = <uint32_t>((number * HASH_FACTOR) >> 57)
                while slots[slot] and numbers[slots[slot] - 1] != number:
                    slot = (slot + 1) & 127
                here = slots[slot] - 1
                if here < 0:
                    here = n_lines
                    slots[slot] = <uint8_t>(here + 1)
                    numbers[here] = number
                    sectors[here] = 0
                    covered[here][0] = 0
                    covered[here][1] = 0
                    n_lines += 1
            sectors[here] |= sectors_between(first_byte, last_byte)
            if is_store:
                cover(covered[here], first_byte, last_byte)
            remaining -= last_byte - first_byte + 1
            address += last_byte - first_byte + 1
    for line in range(n_lines):
        lines[line] = numbers[line] << 8 | sectors[line]
        if is_store:
            lines[line] |= <uint64_t>whole_sectors(covered[line]) << 4
    return n_lines


cdef int atomic_conflicts(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane) noexcept nogil:
    """Conflicts of an atomic: the sum over its sectors of the lanes beyond the first at the busiest word."""
    cdef uint64_t sorted_addresses[MAX_LANES]
    cdef uint64_t width = bytes_per_lane if bytes_per_lane else 1, address
    cdef int lane, at, run = 0, busiest = 0, total = 0
    for lane in range(n_lanes):
        address, at = addresses[lane], lane
        while at and sorted_addresses[at - 1] > address:
            sorted_addresses[at] = sorted_addresses[at - 1]
            at -= 1
        sorted_addresses[at] = address
    for lane in range(n_lanes):
        address = sorted_addresses[lane]
        if lane and address >> SECTOR_BITS != sorted_addresses[lane - 1] >> SECTOR_BITS:
            total += busiest - 1
            run = busiest = 0
        elif lane and address // width != sorted_addresses[lane - 1] // width:
            run = 0
        run += 1
        busiest = max(busiest, run)
    return total + busiest - 1 if n_lanes else 0


cdef int bank_cycles(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane) noexcept nogil:
    """Cycles in which WORD_BANKS banks serve the lanes; each bank serves a word per cycle. Groups of 128 B follow each other."""
    cdef uint64_t words[WORD_BANKS][MAX_LANES]      # by bank: distinct words of the current group of lanes
    cdef uint8_t counts[WORD_BANKS]
    cdef int lane, i, group_lanes = MAX_LANES, busiest = 0, cycles = 0
    cdef uint64_t word, last, bank
    while group_lanes > 1 and <uint32_t>group_lanes * bytes_per_lane > 128:
        group_lanes >>= 1
    for lane in range(n_lanes):
        if lane & (group_lanes - 1) == 0:
            cycles += busiest
            busiest = 0
            memset(counts, 0, sizeof(counts))
        word, last = addresses[lane] >> WORD_BITS, (addresses[lane] + bytes_per_lane - 1) >> WORD_BITS
        while word <= last:
            bank = word & (WORD_BANKS - 1)
            for i in range(counts[bank]):
                if words[bank][i] == word:
                    break
            else:
                words[bank][counts[bank]] = word
                counts[bank] += 1
                busiest = max(busiest, <int>counts[bank])
            word += 1
    return min(cycles + busiest, MAX_CONFLICT_CYCLES)


cdef uint8_t bank_words(
    const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, const uint64_t* lines, int n_lines
) noexcept nogil:
    """Cycles of the banks beyond those that deliver the sectors without conflicts, modulo MAX_CONFLICT_CYCLES."""
    cdef int i, sectors = 0
    if not n_lines:
        return 0
    for i in range(n_lines):
        sectors += SECTOR_COUNTS[lines[i] & 15]
    sectors = min((sectors + 3) >> 2, MAX_CONFLICT_CYCLES)
    return <uint8_t>((bank_cycles(addresses, n_lanes, bytes_per_lane) - sectors) & (MAX_CONFLICT_CYCLES - 1))


def bank_words_of(addresses, bytes_per_lane):
    """The `bank_words` field of a load or store in a trace (docs/reference/trace-format.md), for synthetic workloads and tests.

    Parameters
    ----------
    addresses : byte address of each active lane, at most 32
    bytes_per_lane : bytes that each lane moves, 1 to 128
    """
    cdef const uint64_t[::1] view = np.ascontiguousarray(addresses, dtype=np.uint64)
    cdef uint64_t lines[MAX_OP_LINES]
    cdef int n = <int>min(view.shape[0], MAX_LANES + 1)
    if n > MAX_LANES or not 1 <= bytes_per_lane <= MAX_BYTES_PER_LANE:
        raise ValueError(f"{view.shape[0]} lanes of {bytes_per_lane} B; expected at most {MAX_LANES} of 1..{MAX_BYTES_PER_LANE} B")
    if not n:
        return 0
    if int(np.max(np.asarray(view))) > MAX_ADDRESS - MAX_BYTES_PER_LANE:
        raise ValueError(f"an address beyond {MAX_ADDRESS:#x}")
    return bank_words(&view[0], n, bytes_per_lane, lines, coalesce_op(&view[0], n, bytes_per_lane, False, lines))


def atomic_conflicts_of(addresses, bytes_per_lane):
    """The conflict count of an atomic in a trace (docs/reference/trace-format.md), for tests.

    Parameters
    ----------
    addresses : byte address of each active lane, at most 32
    bytes_per_lane : bytes of a word
    """
    cdef const uint64_t[::1] view = np.ascontiguousarray(addresses, dtype=np.uint64)
    if view.shape[0] > MAX_LANES:
        raise ValueError(f"{view.shape[0]} lanes: expected at most {MAX_LANES}")
    return atomic_conflicts(&view[0], <int>view.shape[0], bytes_per_lane) if view.shape[0] else 0


def coalesce(addresses, lanes, bytes_per_lane, is_store):
    """Coalesce many warp memory operations at once.

    Parameters
    ----------
    addresses : byte address of every active lane, op after op, ascending lane number within an op
    lanes : number of active lanes of each op, 0 to 32
    bytes_per_lane : bytes that each lane of the op moves, 1 to 128
    is_store : whether the op writes (only then do lines mark sectors that are written whole)

    Returns
    -------
    lines : uint64 words as in `records.pxd`; an op's lines are in the order in which its lanes first access them
    n_lines : uint8, the number of lines of each op
    """
    cdef const uint64_t[::1] address_view = np.ascontiguousarray(addresses, dtype=np.uint64)
    cdef const uint8_t[::1] lane_view = np.ascontiguousarray(lanes, dtype=np.uint8)
    cdef const uint8_t[::1] width_view = np.ascontiguousarray(bytes_per_lane, dtype=np.uint8)
    cdef const uint8_t[::1] store_view = np.ascontiguousarray(is_store, dtype=np.uint8)
    cdef Py_ssize_t n_ops = lane_view.shape[0], op, n = 0, lane = 0
    if width_view.shape[0] != n_ops or store_view.shape[0] != n_ops:
        raise ValueError("lanes, bytes_per_lane and is_store must be of one length")
    for op in range(n_ops):
        if lane_view[op] > MAX_LANES or not 1 <= width_view[op] <= MAX_BYTES_PER_LANE:
            raise ValueError(f"op {op}: {lane_view[op]} lanes of {width_view[op]} B; expected 0..32 of 1..128 B")
        n += lane_view[op]
    if n != address_view.shape[0]:
        raise ValueError(f"{address_view.shape[0]} addresses for {n} active lanes")
    if n and int(np.max(np.asarray(address_view))) > MAX_ADDRESS - MAX_BYTES_PER_LANE:
        raise ValueError(f"an address beyond {MAX_ADDRESS:#x}")

    # The buffer is for the worst case of one group of operations, so that memory follows the lines really accessed.
    counts = np.empty(n_ops, dtype=np.uint8)
    cdef uint8_t[::1] count_view = counts
    cdef Py_ssize_t group_ops = 1 << 14, first = 0, last, used
    buffer = np.empty(min(group_ops, max(n_ops, 1)) * MAX_OP_LINES, dtype=np.uint64)
    cdef uint64_t[::1] buffer_view = buffer
    groups = []
    while first < n_ops:
        last = min(first + group_ops, n_ops)
        used = 0
        with nogil:
            for op in range(first, last):
                if lane_view[op] == 0:
                    count_view[op] = 0
                    continue
                count_view[op] = <uint8_t>coalesce_op(
                    &address_view[lane], lane_view[op], width_view[op], store_view[op] != 0, &buffer_view[used]
                )
                lane += lane_view[op]
                used += count_view[op]
        groups.append(buffer[:used].copy())
        first = last
    return (np.concatenate(groups) if groups else np.empty(0, dtype=np.uint64)), counts
