"""Everything below the L1s: crossbar, L2 slices, metadata cache, device memory and link.

A request is followed to its end when it issues; what it takes of ports and channels is booked for the times at which it arrives
there (`port`, `dram`).
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from buddysim.replay.engine.arena cimport Arena, arena_zeroed
from buddysim.replay.engine.cache cimport (
    DIRTY, PARTIAL, Line, Row, SectorCache, cache_coming, cache_find, cache_not_yet, cache_prefetch,
    cache_replace, cache_row, cache_touch, sector_count,
)
from buddysim.replay.engine.reservation_table cimport Calendar, SlotGrid
from buddysim.replay.engine.division cimport Divisor
from buddysim.replay.engine.dram cimport DeviceLocation, Dram, banked_read, dram_write, larger
from buddysim.replay.engine.compiler_hints cimport prefetch, unlikely
from buddysim.replay.engine.kinds cimport (
    DRAM_WRITE, HISTOGRAM_BINS, L2_MSHR, LINK_READ, LINK_WRITE, REPLY_PORT, REQUEST_PORT,
    SLICE_PORT, TRAFFIC_KINDS, Queue, Traffic,
)
from buddysim.replay.engine.address_map_simd cimport LineLocation, LocationRules
from buddysim.replay.engine.port cimport FINE_BITS, Port, port_pass, port_take

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long x) noexcept nogil

cdef struct Counters:
    int64_t memory_instructions
    int64_t line_accesses
    int64_t l1_turns            # of L1s with banks of words, less their lines
    int64_t load_sectors        # sectors asked for by loads and atomics
    int64_t store_sectors
    int64_t l1_accesses         # sectors of loads looked up in an L1
    int64_t l1_hits
    int64_t l1_merged           # in flight for an earlier load
    int64_t l1_lines
    int64_t l1_line_hits
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
    int64_t freed_sectors       # dirty sectors of allocations that were freed
    int64_t metadata_hits
    int64_t metadata_merged     # lookups whose line is in flight for an earlier miss
    int64_t guessed_fills       # fills that fetched sectors before the metadata were there
    int64_t wrong_guesses       # of these, those that asked for sectors that were not needed
    int64_t wasted_sectors      # these sectors
    int64_t cancelled_sectors   # of guesses: not needed, and not fetched
    int64_t buddy_fills
    int64_t buddy_writebacks
    int64_t grown               # entries whose size state rose at a write-back
    int64_t shrunk
    int64_t load_ps             # sum of the times in `load_histogram`: from issue to arrival of L1-missing loads
    int64_t[TRAFFIC_KINDS] link_read        # bytes by Traffic
    int64_t[TRAFFIC_KINDS] link_write
    int64_t[HISTOGRAM_BINS] load_histogram
    int64_t[HISTOGRAM_BINS] memory_histogram

cdef struct Region:             # an allocation
    uint32_t first_entry
    uint32_t entries
    int placement               # Placement
    int kept                    # sectors of each entry in device memory; 0 stands for the 8 B of a 16x target
    int64_t fills
    int64_t writebacks
    int64_t buddy
    uint64_t first_line         # where the trace has it: address / 128
    uint64_t written_first      # launch_indices of the kernels, first and last, whose stores leave the classes after a write-back
    uint64_t written_last       # that `MemorySystem.state` has of its entries now
    uint32_t next               # the region behind it in the 64 entries in which it ends (`regions`)
    uint32_t first_piece        # its entries that can be looked up once they are touched: the first one
    uint32_t end_piece          # and the one behind the last

cdef struct Mshrs:              # a ring: the one taken first is next
    int64_t* free_ps            # [n]: when each comes free
    int64_t* end
    int64_t* next

cdef struct SmPorts:            # an SM's at the crossbar
    Port requests
    Port replies
    int64_t queue_free_ps       # of an SM with a queue: when the request at its head has left
    Calendar* arrivals          # and of its replies, a sector a slot
    int run_slice               # where SMs take turns: the slice of its last request, counted from 1,
    int run_slots               # slots from one request of its run there to the next: 2 where it takes turns, else 1,
    int64_t run_next_ps         # and when the next one could leave
    int64_t[6] reserved         # whole cache lines of the CPU

cdef struct Slice:              # of the L2, its lines apart; what a load needs begins cache lines of the CPU
    Mshrs mshrs
    Calendar* arrivals          # of requests from SMs with queues, a sector a slot; NULL: the crossbar has ports
    int64_t first_pseudo        # of the pseudo-channels behind it
    Port port
    Port codec                  # its (de)compressor
    Calendar* departures        # of replies to SMs with queues
    Port atomics                # its atomic unit
    int64_t booked_by           # where SMs take turns: the SM whose requests are booked furthest ahead, counted from 1,
    int64_t booked_ps           # until when,
    int64_t others_ps           # and until when those of any other
    int64_t[6] reserved

cdef struct MetadataSlice:      # of the metadata cache, its lines apart
    Port port
    int64_t[5] reserved         # whole cache lines of the CPU

cdef struct Split:              # where a compressed entry's sectors lie
    int device
    int buddy

cdef struct FillPlan:           # what a fill of a compressed entry moves, in sectors
    uint8_t at_once             # from device memory as soon as it may be read
    uint8_t wasted              # besides, on a guess that was too large
    uint8_t later               # from device memory once the size is known, where the guess was too small
    uint8_t demand              # of all these
    uint8_t overfetch           # at once and later
    uint8_t buddy               # over the link
    uint8_t filled              # mask of the sectors that the L2 has then
    uint8_t decompressed

cdef struct Link:
    int64_t byte_cost_num       # cost of a byte = num / den
    int64_t byte_cost_den
    int64_t read_ps             # from the L2 slice over the link and back, idle, without the transfer itself
    int64_t header_bytes
    int64_t packet_bytes
    Port* ports                 # read direction, write direction
    int64_t read_bytes          # payload and headers carried
    int64_t write_bytes

cdef struct MemorySystem

ctypedef int64_t (*FillOp)(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* sectors,
                           int64_t t) noexcept nogil      # `sectors`: those wanted, then those filled
ctypedef int64_t (*WritebackOp)(MemorySystem* m, Slice* slice, uint32_t entry, Line line, int new_class,
                                int64_t t) noexcept nogil      # `new_class`: the entry's size from now on
ctypedef int64_t (*AccessOp)(MemorySystem* m, uint32_t entry, int64_t t) noexcept nogil
ctypedef int64_t (*NearOp)(MemorySystem* m, const SmPorts* sm, const LineLocation* at, unsigned int wanted, bint for_atomic,
                           int64_t t) noexcept nogil     # a load's or atomic's data, as `home_load`
ctypedef int64_t (*FarOp)(MemorySystem* m, const SmPorts* sm, const LineLocation* at,
                          unsigned int touched) noexcept nogil      # what a store takes longer; its sectors leave all copies
ctypedef bint (*HoldOp)(MemorySystem* m, uint32_t entry) noexcept nogil
ctypedef int64_t (*WakeOp)(MemorySystem* m, int warp, bint at_end, int64_t t) noexcept nogil
ctypedef void (*WrittenOp)(MemorySystem* m, uint32_t first_entry, uint32_t end_entry) noexcept nogil

cdef struct MemorySystem:
    FillOp fill
    WritebackOp writeback
    AccessOp access             # when an access that comes at `t` may look into the L2, before it does; NULL: at once
    NearOp near_load            # of a partitioned L2 (`partitions`), else NULL
    FarOp far_store
    HoldOp may_hold             # may the L2 hold an entry that a copy or fill has written; NULL: it may
    WakeOp wake                 # when a warp whose turn comes at `t` can go on, `t` or before: now; NULL: at once
    WrittenOp written           # a copy or fill has written these entries; NULL: the scheme need not know
    int warp                    # whose instruction is at hand, where there is `wake`
    void* scheme_state          # the scheme's own
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
    int64_t rewrite_cost        # besides, a store's sector that is dirty already; 0: none
    int64_t atomic_cost         # one sector through a slice's atomic unit
    SlotGrid slice_grid         # where SMs have queues: a sector into or out of a slice,
    SlotGrid reply_grid         # into an SM,
    int64_t queue_sector_ps     # and out of one
    bint turns                  # do SMs take turns at a slice?
    SmPorts* sms                # [sms]
    # L2
    Slice* slices               # [slices]
    Divisor n_slices
    int interleave_shift        # log2 of the neighbouring lines that lie in one slice
    bint polynomial_hash        # are slices chosen by `by_polynomial`? Then:
    int channel_bits            # log2 of the channels that slices belong to
    int channel_slice_bits      # and of the slices of each
    uint8_t[1024] remainders    # [byte of a group's number][its value]
    Divisor pseudo_per_slice    # pseudo-channels behind a slice
    SectorCache l2
    int most_dirty              # sectors of a set that may be dirty; 0: all of them
    uint32_t partitions
    Divisor partition_slices    # slices of each
    uint32_t partition_sms      # SMs of each, of the last one perhaps fewer
    int64_t far_ps              # what a request to another partition takes longer, there and back
    bint fetch_pairs            # do misses fetch aligned pairs of sectors of uncompressed memory?
    unsigned int fetch_too      # of the fill at hand: sectors besides those wanted, from uncompressed device memory
    uint8_t* l2_classes         # of each way: what its entry's size class is after the last store to the line
    const SectorCache* l1       # the L1s of all SMs
    # compression
    int64_t codec_ps
    int64_t codec_cost          # one entry through a (de)compressor
    int guess_on_miss           # does a fill guess what it needs of device memory where the metadata cache lacks its line?
    int guess_on_merged         # and where the line is in flight?
    int cancel_guesses          # is what has not begun cancelled when the metadata show that it is not needed?
    int whole_raw_entry
    int eight_byte_state
    int perfect_metadata
    int64_t metadata_ps         # latency of a lookup
    int64_t metadata_cost       # one lookup through a metadata slice's port
    MetadataSlice* metadata_ports    # [metadata slices]
    Divisor metadata_unit       # bytes of a metadata slice's rows
    int metadata_shift          # log2 of the entries that a metadata line covers
    int metadata_sectors        # sectors of a metadata line
    SectorCache metadata
    uint32_t metadata_entry     # where the metadata region begins
    # memory
    Dram dram
    Divisor stripe_entries      # pseudo-channels
    Divisor piece_entries       # entries that one row in every bank group of every pseudo-channel holds together
    Divisor metadata_slices
    Divisor banks_of_group
    uint32_t bank_groups        # a power of two
    Link link
    # where lines lie
    LocationRules rules
    bint eight_at_a_time        # can the CPU find them so?
    # contents
    int64_t n_entries
    Split[40] splits            # [kept sectors: 0 to 4][size class]: see `compressed`
    FillPlan[1280] plans        # [size known: no, yes][kept sectors: 0 to 4][sectors wanted][size class]: see `compressed`
    bint sized                  # do sizes matter?
    uint8_t* state              # [n_entries]: size class now | class after a store of some kernels << 4 (`Region.written_*`)
    int n_regions
    Region* regions             # [n_regions], and one more at each end: see `regions`
    Region* last_region
    uint32_t* region_of_page    # [n_entries / 64]: the first live region that reaches into the 8 KB page
    uint32_t* live              # [n_live]: the live regions, by their addresses in the trace
    int64_t n_live
    Counters count
    int64_t* waits              # [QUEUES][HISTOGRAM_BINS], or NULL: not asked for; of some only waits above 0 (`Engine`)
    bint reads_apart            # do reads of device memory go through `device_fetch_apart`?


cdef int64_t queue_wait(MemorySystem* m, Queue queue, Port* port, int64_t bucket, int64_t t, int64_t cost) noexcept nogil
cdef int64_t device_fetch_apart(MemorySystem* m, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil


cdef inline void histogram_add(int64_t* bins, int64_t ps) noexcept nogil:
    bins[HISTOGRAM_BINS - 1 - leading_zeros(<unsigned long long>ps | 1)] += 1


cdef inline void count_wait(MemorySystem* m, Queue queue, int64_t ps) noexcept nogil:
    """A request has waited so long."""
    if unlikely(m.waits != NULL):
        histogram_add(m.waits + HISTOGRAM_BINS * <int>queue, ps)


cdef inline int64_t queue_pass(MemorySystem* m, Queue queue, Port* port, int64_t t, int64_t cost) noexcept nogil:
    """`port_pass`, with the wait counted."""
    cdef int64_t bucket, turn
    if port_take(port, t, cost, &bucket, &turn):
        return larger(turn, t)
    return queue_wait(m, queue, port, bucket, t, cost)


cdef inline int64_t device_fetch(MemorySystem* m, const DeviceLocation* location, int bursts, int64_t t) noexcept nogil:
    """`dram_read`, with the wait counted: what it takes longer than an open row of an idle channel does."""
    cdef DeviceLocation copy
    if unlikely(m.reads_apart):
        copy = location[0]      # so that the compiler need not keep `location` itself in memory
        return device_fetch_apart(m, &copy, bursts, t)
    return banked_read(&m.dram, location, bursts, t + m.dram.before_ps) + m.dram.after_ps


cdef inline int64_t device_read(MemorySystem* m, const DeviceLocation* location, int bursts, Traffic kind,
                                int64_t t) noexcept nogil:
    """`device_fetch`, with the bursts counted."""
    location.channel.moved[<int>kind] += bursts
    return device_fetch(m, location, bursts, t)


cdef inline int64_t device_write(MemorySystem* m, const DeviceLocation* location, int bursts, Traffic kind,
                                 int64_t t) noexcept nogil:
    """`dram_write`, with the wait counted."""
    cdef int64_t taken = dram_write(&m.dram, location, bursts, kind, t)
    count_wait(m, DRAM_WRITE, taken - t)
    return taken


cdef inline int mshrs_init(Arena* arena, Mshrs* mshrs, uint32_t n) except -1:
    """Makes `n` MSHRs, all free."""
    mshrs.free_ps = <int64_t*>arena_zeroed(arena, n, sizeof(int64_t))
    mshrs.end = mshrs.free_ps + n
    mshrs.next = mshrs.free_ps
    return 0


cdef inline int64_t* mshr_take(Mshrs* mshrs) noexcept nogil:
    """Takes the next MSHR: when it comes free, to be replaced by when it will."""
    cdef int64_t* taken = mshrs.next
    mshrs.next = taken + 1 if taken + 1 != mshrs.end else mshrs.free_ps
    return taken


cdef inline int64_t* mshr_take_earlier(Mshrs* mshrs) noexcept nogil:
    """`mshr_take`, after the next MSHR and the one after it have changed places where the latter comes free first."""
    cdef int64_t* taken = mshr_take(mshrs)
    cdef int64_t free_ps = taken[0]
    if mshrs.next[0] < free_ps:
        taken[0] = mshrs.next[0]
        mshrs.next[0] = free_ps
    return taken


cdef inline Region* region_of(MemorySystem* m, uint32_t entry) noexcept nogil:
    """The live region that holds an entry: often the one that held the last."""
    cdef Region* region = m.last_region
    if entry - region.first_entry >= region.entries:
        region = m.regions - 1 + m.region_of_page[entry >> 6]
        while entry - region.first_entry >= region.entries:
            region = m.regions - 1 + region.next
        m.last_region = region
    return region


cdef inline int64_t link_bytes(const Link* link, int64_t payload) noexcept nogil:
    """Payload and the headers of its packets."""
    return payload + (payload + link.packet_bytes - 1) / link.packet_bytes * link.header_bytes


cdef inline int64_t link_cost(const Link* link, int64_t total) noexcept nogil:
    return (total * link.byte_cost_num + link.byte_cost_den - 1) / link.byte_cost_den


cdef inline int64_t link_read(MemorySystem* m, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """When `payload` bytes from the far side are at the L2 slice that asked at `t`."""
    cdef int64_t total = link_bytes(&m.link, payload)
    cdef int64_t cost = link_cost(&m.link, total)
    m.count.link_read[<int>kind] += payload
    m.link.read_bytes += total
    return queue_pass(m, LINK_READ, &m.link.ports[0], t, cost) + m.link.read_ps + (cost >> FINE_BITS)


cdef inline int64_t link_write(MemorySystem* m, int64_t payload, Traffic kind, int64_t t) noexcept nogil:
    """Posts `payload` bytes to the far side at `t`; returns when the link takes them."""
    cdef int64_t total = link_bytes(&m.link, payload)
    m.count.link_write[<int>kind] += payload
    m.link.write_bytes += total
    return queue_pass(m, LINK_WRITE, &m.link.ports[1], t, link_cost(&m.link, total))


cdef inline uint8_t* l2_class(const MemorySystem* m, const Row* row, int64_t way) noexcept nogil:
    """Where the size class is kept that the last store to a line gives its entry."""
    return m.l2_classes + ((<char*>row.tags - m.l2.rows) >> 4) + way        # a way takes 16 B of its row


cdef inline int64_t evict_line(MemorySystem* m, Slice* slice, uint32_t entry, const Row* row, int64_t way,
                               int64_t t) noexcept nogil:
    """Lets the scheme write back the dirty sectors of a way's line, of `entry`; returns when the way is free."""
    cdef Line line = row.lines[way]
    cdef unsigned int dirty = line >> DIRTY & 15
    if not dirty:
        return t
    m.count.writeback_sectors += sector_count(dirty)
    return m.writeback(m, slice, entry, line, l2_class(m, row, way)[0], t)


cdef inline void l2_prefetch(const MemorySystem* m, const LineLocation* at) noexcept nogil:
    """Prefetches what an access to a line will need into the CPU's cache."""
    cache_prefetch(&m.l2, at.l2_set)
    prefetch(m.state + at.entry)


cdef inline int64_t l2_way(MemorySystem* m, Slice* slice, uint32_t entry, const Row* row, unsigned int* line,
                           int64_t* t) noexcept nogil:
    """The way for an entry's line and what it holds of it, after evicting one where there is none; `t` becomes when it is free."""
    cdef int64_t way = cache_find(&m.l2, row, entry)
    cdef uint32_t left
    m.count.l2_lines += 1
    if way >= 0:
        m.count.l2_line_hits += 1
        cache_touch(&m.l2, row, way)
        line[0] = row.lines[way]
        return way
    line[0] = 0
    way = cache_replace(&m.l2, row, entry, &left)
    t[0] = evict_line(m, slice, left, row, way, t[0])
    return way


cdef inline unsigned int pair_partners(unsigned int sectors) noexcept nogil:
    """The other sector of each sector's aligned pair."""
    return (sectors & 5) << 1 | (sectors & 10) >> 1


cdef inline int64_t l2_fetch(MemorySystem* m, Slice* slice, const LineLocation* at, unsigned int* line, int64_t* ready_ps,
                             unsigned int missing, int64_t t) noexcept nogil:
    """Fetches a line's missing sectors through the scheme; returns when they can be used."""
    cdef int64_t* mshr = mshr_take(&slice.mshrs)
    cdef int64_t done, begin = t
    cdef unsigned int filled = missing
    m.count.demanded += sector_count(missing)
    if unlikely(mshr[0] > t):
        count_wait(m, L2_MSHR, mshr[0] - t)
        begin = mshr[0]
    if unlikely(m.fetch_pairs):
        m.fetch_too = pair_partners(missing) & ~(missing | line[0])
    done = m.fill(m, slice, at, &filled, begin)
    mshr[0] = done
    filled &= ~line[0]
    m.count.fill_sectors += sector_count(filled)
    # The bytes of earlier stores are merged.
    line[0] = cache_coming(line[0] & ~(filled << PARTIAL), ready_ps, filled, t, done)
    histogram_add(m.count.memory_histogram, done - t)
    return done


cdef int64_t l2_clean(MemorySystem* m, Slice* slice, const Row* row, int64_t t) noexcept nogil


cdef inline int64_t rewrite_pass(MemorySystem* m, Slice* slice, unsigned int rewritten, int64_t t) noexcept nogil:
    """When a store's sectors that are dirty already have passed their slice, which takes longer for them."""
    return queue_pass(m, SLICE_PORT, &slice.port, t, sector_count(rewritten) * m.rewrite_cost) if rewritten else t


cdef inline int64_t request_turn(MemorySystem* m, SmPorts* sm, Slice* slice, int n, int requests, int64_t t) noexcept nogil:
    """A line's request, of `n` sectors at its slice, `requests` of them sent by the SM; returns when its turn comes there."""
    if unlikely(slice.arrivals != NULL):
        m.at_slice_ps = queue_send(m, sm, slice, n, t) + m.request_ps
        return m.at_slice_ps
    t = queue_pass(m, REQUEST_PORT, &sm.requests, t, requests * m.request_cost)
    m.at_slice_ps = t + m.request_ps
    return queue_pass(m, SLICE_PORT, &slice.port, m.at_slice_ps, n * m.slice_cost)


cdef inline int64_t home_load(MemorySystem* m, const LineLocation* at, unsigned int wanted, bint for_atomic,
                              int64_t t) noexcept nogil:
    """A load's or atomic's sectors of a line, past the slice's port at `t`; returns when the slice has the last of them."""
    cdef int n = sector_count(wanted)
    cdef int64_t way, data, arrival = t
    cdef unsigned int line, present, missing, merged
    cdef Slice* slice = &m.slices[at.slice]
    cdef Row row = cache_row(&m.l2, at.l2_set)
    cdef int64_t* ready_ps
    way = l2_way(m, slice, at.entry, &row, &line, &arrival)
    ready_ps = row.ready_ps + way
    prefetch(ready_ps)
    data = arrival
    present = line & wanted
    missing = wanted & ~present
    if present:
        merged = cache_not_yet(line, ready_ps, arrival) & present
        if merged:
            data = ready_ps[0]
            m.count.l2_read_merged += sector_count(merged)
        m.count.l2_read_hits += sector_count(present & ~merged)
    if missing:
        data = larger(data, l2_fetch(m, slice, at, &line, ready_ps, missing, arrival))
    if for_atomic:
        m.count.dirtied_sectors += sector_count(wanted & ~(line >> DIRTY))
        line |= wanted << DIRTY
        l2_class(m, &row, way)[0] = <uint8_t>at.size_class
        data = port_pass(&slice.atomics, &m.now_ps, data, n * m.atomic_cost)
    row.lines[way] = <Line>line
    if for_atomic and unlikely(m.most_dirty != 0):
        l2_clean(m, slice, &row, arrival)
    return data


cdef inline int64_t l2_load(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int wanted, bint for_atomic,
                            int64_t t) noexcept nogil:
    """A load's or atomic's sectors of a line, asked for by an SM at `t`; returns when the last of them is usable there."""
    cdef int n = sector_count(wanted)
    cdef int64_t data, left
    cdef Slice* slice = &m.slices[at.slice]
    if unlikely(m.near_load != NULL):
        t = m.at_slice_ps = queue_pass(m, REQUEST_PORT, &sm.requests, t, m.request_cost) + m.request_ps
        data = m.near_load(m, sm, at, wanted, for_atomic, t)
    else:
        t = request_turn(m, sm, slice, n, 1, t)
        if unlikely(m.access != NULL):
            t = m.access(m, at.entry, t)
        data = home_load(m, at, wanted, for_atomic, t)
    if unlikely(slice.arrivals != NULL):
        left = queue_reply(m, sm, slice, n, data)
        count_wait(m, REPLY_PORT, larger(0, left - (n - 1) * m.sector_ps - data))
        return left + m.reply_ps
    data += m.reply_ps
    data = queue_pass(m, REPLY_PORT, &sm.replies, data, n * m.reply_cost)
    return data + (n - 1) * m.sector_ps


cdef inline int64_t l2_store(MemorySystem* m, SmPorts* sm, const LineLocation* at, unsigned int touched, unsigned int whole,
                             int64_t t) noexcept nogil:
    """A store's sectors of a line; returns when the SM hears that the L2 has them."""
    cdef int n = sector_count(touched)
    cdef int64_t way, arrival, far = 0
    cdef unsigned int line, partial
    cdef Slice* slice = &m.slices[at.slice]
    cdef Row row = cache_row(&m.l2, at.l2_set)
    if unlikely(m.far_store != NULL):
        far = m.far_store(m, sm, at, touched)
        arrival = queue_pass(m, REQUEST_PORT, &sm.requests, t, n * m.request_cost) + m.request_ps + (far >> 1)
        arrival = queue_pass(m, SLICE_PORT, &slice.port, arrival, n * m.slice_cost)
    else:
        arrival = request_turn(m, sm, slice, n, n, t)
    if unlikely(m.access != NULL):
        arrival = m.access(m, at.entry, arrival)
    way = l2_way(m, slice, at.entry, &row, &line, &arrival)
    if unlikely(m.rewrite_cost != 0):
        arrival = rewrite_pass(m, slice, touched & (line >> DIRTY), arrival)
    m.count.l2_writes += n
    m.count.l2_write_hits += sector_count(touched & (line | line >> DIRTY))
    m.count.dirtied_sectors += sector_count(touched & ~(line >> DIRTY))
    line |= whole | touched << DIRTY
    partial = (line >> PARTIAL | touched) & ~line & 15
    row.lines[way] = <Line>(line & ~(15 << PARTIAL) | partial << PARTIAL)
    l2_class(m, &row, way)[0] = <uint8_t>at.size_class
    if unlikely(m.most_dirty != 0):
        arrival = l2_clean(m, slice, &row, arrival)
    if unlikely(slice.arrivals != NULL):
        arrival = queue_reply(m, sm, slice, n, arrival)
    return arrival + m.reply_ps + (far - (far >> 1))


cdef int64_t queue_send(MemorySystem* m, SmPorts* sm, Slice* slice, int requests, int64_t t) noexcept nogil
cdef int64_t queue_reply(MemorySystem* m, SmPorts* sm, Slice* slice, int replies, int64_t t) noexcept nogil
cdef object memory_init(Arena* arena, MemorySystem* m, const SectorCache* l1, dict n, regions, state, bint sized,
                        bint has_metadata)
cdef void waits_init(MemorySystem* m, int64_t* waits) noexcept
cdef int64_t lines_leave(MemorySystem* m, uint32_t first_entry, uint32_t entries) noexcept nogil
cdef int64_t l2_dirty_sectors(const MemorySystem* m) noexcept nogil
