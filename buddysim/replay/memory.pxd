"""Everything below the L1s: crossbar, L2 slices, metadata cache, device memory, link, and where each entry lies.

A request's way is followed to its end when it issues; what it takes of ports and channels is booked at the times at which it
gets there (`port`, `dram`).
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from buddysim.replay.cache cimport (
    DIRTY, PARTIAL, Line, Row, SectorCache, cache_coming, cache_find, cache_install, cache_not_yet, cache_prefetch, cache_ready_ps,
    cache_row, cache_set, cache_touch, cache_victim, fold, sector_count,
)
from buddysim.replay.dram cimport DevicePlace, Dram, dram_place, larger
from buddysim.replay.hints cimport prefetch
from buddysim.replay.port cimport FINE_BITS, Port, port_pass

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long x) noexcept nogil

cdef struct Divisor:            # of 32-bit numbers: a shift where it is a power of two
    uint32_t by
    int bits                    # log2 of `by`, or -1

cdef enum Place:
    PLACE_DEVICE = 0            # uncompressed in device memory
    PLACE_COMPRESSED = 1        # compressed in device memory, what overflows in buddy memory
    PLACE_HOST = 2              # in host memory, over the link

cdef struct Spot:               # where the L2 would hold an entry
    uint32_t entry
    uint32_t slice
    uint32_t set                # counted over all slices
    uint32_t l1_set             # of the SM that asks, counted over all SMs

cdef enum TrafficKind:          # why sectors move
    DEMAND = 0
    OVERFETCH = 1
    READ_MODIFY_WRITE = 2
    WRITE_BACK = 3
    METADATA_READ = 4
    METADATA_WRITE = 5
    MIGRATION_IN = 6
    MIGRATION_OUT = 7

cdef enum:
    HISTOGRAM_BINS = 40         # bin b holds times in [2^b, 2^(b+1)) ps

cdef struct Counters:
    int64_t memory_instructions
    int64_t line_accesses
    int64_t load_sectors        # sectors asked for by loads and atomics
    int64_t store_sectors
    int64_t l1_accesses         # sectors of loads looked up in an L1
    int64_t l1_hits
    int64_t l1_merged           # found on their way
    int64_t l1_lines
    int64_t l1_line_hits
    int64_t l2_reads            # sectors of loads and atomics at the L2
    int64_t l2_read_hits
    int64_t l2_read_merged
    int64_t l2_writes           # sectors of stores at the L2
    int64_t l2_write_hits
    int64_t l2_lines
    int64_t l2_line_hits
    int64_t demanded            # sectors demanded of memory
    int64_t fill_sectors        # sectors made valid by fills
    int64_t dirtied_sectors     # clean sectors that became dirty
    int64_t writeback_sectors   # dirty sectors that left the L2
    int64_t overwritten_sectors  # dirty sectors that a copy or fill overwrote in memory
    int64_t metadata_accesses
    int64_t metadata_hits
    int64_t fills
    int64_t writebacks
    int64_t buddy_fills
    int64_t buddy_writebacks
    int64_t grown               # entries whose size state rose at a write-back
    int64_t shrunk
    int64_t page_faults
    int64_t pages_prefetched
    int64_t pages_evicted
    int64_t load_ps             # sum of the times from issue to arrival of L1-missing loads
    int64_t loads_missed
    int64_t[8] device           # sectors by TrafficKind
    int64_t[8] link_read        # bytes by TrafficKind
    int64_t[8] link_write
    int64_t[40] load_histogram
    int64_t[40] memory_histogram

cdef struct Region:             # an allocation's place
    int64_t first_entry
    int64_t end_entry
    int place
    int kept                    # sectors of each entry in device memory; 0 stands for the 8 B of a 16x target
    int64_t fills
    int64_t writebacks
    int64_t buddy

cdef struct Link:
    int64_t byte_cost_num       # cost of a byte = num / den
    int64_t byte_cost_den
    int64_t read_ps             # from the L2 slice over the link and back, idle, without the transfer itself
    int64_t header_bytes
    int64_t packet_bytes
    Port* ports                 # read direction, write direction
    int64_t read_bytes          # payload and headers carried
    int64_t write_bytes

cdef struct Pages:              # Unified Memory: see schemes/um.pyx
    int64_t n
    int64_t capacity
    int64_t resident
    int entries_shift           # log2 of entries per page
    int pages_per_block         # pages under one prefetch tree
    int64_t fault_ps
    int fault_batch
    int64_t batch_start_ps
    int64_t batch_end_ps
    int batch_faults
    int32_t* newer              # LRU list over the resident pages; n is the sentinel
    int32_t* older
    int64_t* ready_ps           # -1: not resident

cdef struct MemorySystem

ctypedef int64_t (*FillOp)(MemorySystem* m, uint32_t entry, int slice, unsigned int wanted, unsigned int* filled,
                           int64_t t) noexcept nogil
ctypedef int64_t (*WritebackOp)(MemorySystem* m, uint32_t entry, int slice, Line line, int64_t t) noexcept nogil

cdef struct MemorySystem:
    FillOp fill
    WritebackOp writeback
    int64_t now_ps              # the time of the event at hand
    # When the last request came to these ports: the next ones come at about that time.
    int64_t at_slice_ps
    int64_t at_codec_ps
    # crossbar
    int64_t request_ps          # from the L1's answer to the slice
    int64_t reply_ps            # from the slice back to use
    int64_t sector_ps           # from the first sector of a reply to the next
    int64_t reply_cost          # one sector through an SM's reply port
    int64_t request_cost        # one sector, or a load's request, through an SM's request port
    int64_t slice_cost          # one sector through a slice's port
    Port* replies               # [sms]
    Port* requests              # [sms]
    Port* slice_ports           # [slices]
    # L2
    int n_sms
    int n_slices
    Divisor slices              # n_slices
    int* first_pseudo           # [slices]: the first pseudo-channel behind a slice
    Divisor pseudo_per_slice    # pseudo-channels behind a slice
    SectorCache l2
    int mshrs                   # per slice
    int64_t* mshr_ps            # [slices][mshrs]: when each comes free
    int* mshr_next              # [slices]
    # compression
    int64_t codec_ps
    int64_t codec_cost          # one entry through a (de)compressor
    Port* codecs                # [slices]
    int overlap
    int whole_raw_entry
    int eight_byte_state
    int perfect_metadata
    int64_t metadata_ps         # hit latency
    int metadata_shift          # log2 of the entries that a metadata line tells about
    int metadata_sectors        # sectors of a metadata line
    SectorCache metadata
    uint32_t metadata_entry     # where the metadata region begins
    # memory
    Dram dram
    Divisor stripe_entries      # pseudo-channels
    Divisor piece_entries       # entries that one row in every bank group of every pseudo-channel holds together
    Divisor metadata_slices
    int group_bits              # log2 of the bank groups
    int bank_bits               # log2 of the banks of a group
    Link link
    Pages pages
    # contents
    int64_t n_entries
    uint8_t* state              # [n_entries]: size class now | class after a write-back << 4
    int n_regions
    Region* regions
    uint32_t* region_of_page    # [n_entries / 64]: the first region in the 8 KB page
    Counters count


cdef inline void histogram_add(int64_t* bins, int64_t ps) noexcept nogil:
    cdef int bin = 63 - leading_zeros(<unsigned long long>ps | 1)
    bin = bin if bin < HISTOGRAM_BINS else HISTOGRAM_BINS - 1
    bins[bin] += 1


cdef inline void ring_turn(int* next, int places) noexcept nogil:
    """Moves on to the next place of a ring: the one that was taken first."""
    next[0] = next[0] + 1 if next[0] + 1 < places else 0


cdef inline int sectors_needed(int size_class) noexcept nogil:
    """Sectors that an entry of a size class fills: 0, 1, 1, 1, 2, 3, 3, 4."""
    return <int>((<uint32_t>0x43321110 >> (size_class << 2)) & 15)


cdef inline uint32_t divide(Divisor divisor, uint32_t x) noexcept nogil:
    return x >> divisor.bits if divisor.bits >= 0 else x / divisor.by


cdef inline int remainder(Divisor divisor, uint32_t x) noexcept nogil:
    return <int>(x & (divisor.by - 1) if divisor.bits >= 0 else x % divisor.by)


cdef inline int turned(Divisor divisor, uint32_t x, uint32_t group) noexcept nogil:
    """Position of `x` in its group of `divisor` neighbours, in an order that a hash of the group's number turns.

    So every group covers every position once, and strides spread all the same.
    """
    cdef uint32_t position
    if divisor.bits >= 0:
        return <int>((x ^ fold(group)) & (divisor.by - 1))
    position = x - group * divisor.by + fold(group) % divisor.by
    return <int>(position - divisor.by if position >= divisor.by else position)


cdef inline void l2_spot(const MemorySystem* m, uint32_t entry, Spot* spot) noexcept nogil:
    """The L2 slice and set of an entry."""
    cdef uint32_t local = divide(m.slices, entry)
    spot.entry = entry
    spot.slice = turned(m.slices, entry, local)
    spot.set = <uint32_t>cache_set(&m.l2, spot.slice, local)


cdef inline Region* region_of(const MemorySystem* m, uint32_t entry) noexcept nogil:
    """The region that holds an entry."""
    cdef uint32_t region = m.region_of_page[entry >> 6]
    while entry >= m.regions[region].end_entry:
        region += 1
    return &m.regions[region]


cdef inline void locate_row(const MemorySystem* m, int pseudo, uint32_t entry, DevicePlace* place) noexcept nogil:
    """Where an entry lies in its pseudo-channel.

    One entry of every pseudo-channel is a stripe; stripes go round the bank groups, so that a stream's columns follow each other at
    tCCD_S; one row in every bank group of every pseudo-channel is a piece, and a hash spreads pieces over the banks. Uncompressed
    addresses count in every scheme, so that schemes differ in time only by what they move and wait for.
    """
    cdef uint32_t piece = divide(m.piece_entries, entry)
    cdef uint32_t row = piece >> m.bank_bits
    cdef uint32_t group = divide(m.stripe_entries, entry) & ((1 << m.group_bits) - 1)
    cdef uint32_t in_group = (piece ^ fold(row)) & ((1 << m.bank_bits) - 1)
    dram_place(&m.dram, pseudo, <int>(group | in_group << m.group_bits), row, place)


cdef inline void locate_entry(const MemorySystem* m, uint32_t entry, int slice, DevicePlace* place) noexcept nogil:
    """Where the device part of an entry lies: in a pseudo-channel behind its slice."""
    cdef uint32_t local = divide(m.slices, entry)
    cdef int pseudo = m.first_pseudo[slice] + remainder(m.pseudo_per_slice, local ^ local >> 3 ^ local >> 7)
    locate_row(m, pseudo, entry, place)


cdef inline int64_t link_bytes(const Link* link, int64_t payload) noexcept nogil:
    """Payload and the headers of its packets."""
    return payload + (payload + link.packet_bytes - 1) / link.packet_bytes * link.header_bytes


cdef inline int64_t link_cost(const Link* link, int64_t total) noexcept nogil:
    return (total * link.byte_cost_num + link.byte_cost_den - 1) / link.byte_cost_den


cdef inline int64_t link_read(MemorySystem* m, int64_t payload, TrafficKind kind, int64_t t) noexcept nogil:
    """When `payload` bytes from the far side are at the L2 slice that asked at `t`."""
    cdef int64_t total = link_bytes(&m.link, payload)
    cdef int64_t cost = link_cost(&m.link, total)
    m.count.link_read[<int>kind] += payload
    m.link.read_bytes += total
    return port_pass(&m.link.ports[0], m.now_ps, t, cost) + m.link.read_ps + (cost >> FINE_BITS)


cdef inline int64_t link_write(MemorySystem* m, int64_t payload, TrafficKind kind, int64_t t) noexcept nogil:
    """Posts `payload` bytes to the far side at `t`; returns when the link takes them."""
    cdef int64_t total = link_bytes(&m.link, payload)
    m.count.link_write[<int>kind] += payload
    m.link.write_bytes += total
    return port_pass(&m.link.ports[1], m.now_ps, t, link_cost(&m.link, total))


cdef inline int64_t evict_line(MemorySystem* m, const Row* row, int way, int slice, int64_t t) noexcept nogil:
    """Lets the scheme write back a victim's dirty sectors; returns when its place is free."""
    cdef Line line = row.lines[way]
    cdef unsigned int dirty = line >> DIRTY & 15
    if not dirty:
        return t
    m.count.writeback_sectors += sector_count(dirty)
    m.count.writebacks += 1
    return m.writeback(m, row.tags[way], slice, line, t)


cdef inline void l2_prefetch(const MemorySystem* m, const Spot* spot) noexcept nogil:
    """Has the host fetch what an access to an entry will look at."""
    cache_prefetch(&m.l2, spot.set)
    prefetch(m.state + spot.entry)
    prefetch(m.region_of_page + (spot.entry >> 6))


cdef inline int l2_way(MemorySystem* m, const Spot* spot, const Row* row, int64_t* t) noexcept nogil:
    """The way that holds an entry's line, after evicting one for it where it was not there; `t` becomes when it is free."""
    cdef int way = cache_find(&m.l2, row, spot.entry)
    m.count.l2_lines += 1
    if way >= 0:
        m.count.l2_line_hits += 1
        cache_touch(&m.l2, row, way)
        return way
    way = cache_victim(&m.l2, row)
    t[0] = evict_line(m, row, way, spot.slice, t[0])
    cache_install(&m.l2, row, way, spot.entry)
    return way


cdef inline int64_t l2_fetch(MemorySystem* m, const Spot* spot, const Row* row, int way, unsigned int missing,
                             int64_t t) noexcept nogil:
    """Has the scheme bring missing sectors into a line; returns when they are there."""
    cdef int* next = &m.mshr_next[spot.slice]
    cdef int64_t* mshr = m.mshr_ps + <int64_t>spot.slice * m.mshrs + next[0]
    cdef int64_t start = larger(t, mshr[0])
    cdef int64_t done
    cdef unsigned int filled = missing
    m.count.demanded += sector_count(missing)
    m.count.fills += 1
    done = m.fill(m, spot.entry, spot.slice, missing, &filled, start)
    mshr[0] = done
    ring_turn(next, m.mshrs)
    filled &= ~<unsigned int>row.lines[way]
    m.count.fill_sectors += sector_count(filled)
    cache_coming(&m.l2, row, way, filled, t, done)
    row.lines[way] &= ~(filled << PARTIAL)      # merged with what a store had written
    histogram_add(m.count.memory_histogram, done - t)
    return done


cdef inline int64_t l2_load(MemorySystem* m, const Spot* spot, unsigned int wanted, int sm, bint for_atomic,
                            int64_t t) noexcept nogil:
    """A load's or atomic's sectors of one line, asked for by an SM at `t`; returns when the last of them is usable there."""
    cdef int way, n = sector_count(wanted)
    cdef int64_t data, arrival
    cdef unsigned int present, missing, merged
    cdef Row row = cache_row(&m.l2, spot.set)
    t = port_pass(&m.requests[sm], m.now_ps, t, m.request_cost)
    t += m.request_ps
    m.at_slice_ps = t
    t = port_pass(&m.slice_ports[spot.slice], m.now_ps, t, n * m.slice_cost)
    arrival = t
    way = l2_way(m, spot, &row, &arrival)
    prefetch(cache_ready_ps(&m.l2, row.set, way))
    data = arrival
    present = row.lines[way] & wanted
    missing = wanted & ~present
    m.count.l2_reads += n
    if present:
        merged = cache_not_yet(&m.l2, &row, way, arrival) & present
        if merged:
            data = cache_ready_ps(&m.l2, row.set, way)[0]
            m.count.l2_read_merged += sector_count(merged)
        m.count.l2_read_hits += sector_count(present & ~merged)
    if missing:
        data = larger(data, l2_fetch(m, spot, &row, way, missing, arrival))
    if for_atomic:
        m.count.dirtied_sectors += sector_count(wanted & ~(<unsigned int>row.lines[way] >> DIRTY))
        row.lines[way] |= wanted << DIRTY
    data += m.reply_ps
    data = port_pass(&m.replies[sm], m.now_ps, data, n * m.reply_cost)
    return data + (n - 1) * m.sector_ps


cdef inline int64_t l2_store(MemorySystem* m, const Spot* spot, unsigned int touched, unsigned int whole, int sm,
                             int64_t t) noexcept nogil:
    """A store's sectors of one line; returns when the SM hears that the L2 has them."""
    cdef int way, n = sector_count(touched)
    cdef int64_t arrival
    cdef unsigned int line, partial
    cdef Row row = cache_row(&m.l2, spot.set)
    t = port_pass(&m.requests[sm], m.now_ps, t, n * m.request_cost)
    arrival = t + m.request_ps
    arrival = port_pass(&m.slice_ports[spot.slice], m.now_ps, arrival, n * m.slice_cost)
    way = l2_way(m, spot, &row, &arrival)
    line = row.lines[way]
    m.count.l2_writes += n
    m.count.l2_write_hits += sector_count(touched & (line | line >> DIRTY))
    m.count.dirtied_sectors += sector_count(touched & ~(line >> DIRTY))
    line |= whole | touched << DIRTY
    partial = (line >> PARTIAL | touched) & ~line & 15
    row.lines[way] = <Line>(line & ~(15 << PARTIAL) | partial << PARTIAL)
    return arrival + m.reply_ps
