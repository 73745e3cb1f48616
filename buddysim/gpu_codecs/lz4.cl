/* LZ4 blocks (lz4_Block_format.md): a work-group compresses one block of 64 KB after the other, each into a slot of its
 * own. Compaction is separate launches: payloads and their sizes, the sums, packing. No group waits for another.
 *
 * A group looks at the next SEARCH positions at once and takes the first whose four bytes the hash table has seen. */
#define BLOCK 65536u
#define SLOT 65824u        /* the longest payload of a block: BLOCK + BLOCK / 255 + 16, rounded up */
#define SEARCH 32
#define HASH_BITS 12
#define NONE 0xffffffffu
#define MIN_MATCH 4
#define LAST_LITERALS 5    /* the last bytes of a block are literals, */
#define LAST_MATCH 12      /* and its last match begins at least so far from its end */

uint four_bytes(global const uchar *data) {
    uchar4 bytes = vload4(0, data);
    return as_uint(bytes);
}

/* Bytes that a length takes beyond its four bits. */
uint more_bytes(uint length) { return length < 15 ? 0 : (length - 15) / 255 + 1; }

/* All work-items write these bytes. */
void put_more(global uchar *out, uint length) {
    uint count = more_bytes(length);
    for (uint i = get_local_id(0); i < count; i += get_local_size(0)) out[i] = i + 1 < count ? 255 : (length - 15) % 255;
}

void copy(global uchar *to, global const uchar *from, uint count) {
    for (uint i = get_local_id(0); i < count; i += get_local_size(0)) to[i] = from[i];
}

/* All work-items write a sequence, a match of length 0 being none; the number of its bytes. */
uint put_sequence(global uchar *out, global const uchar *literals, uint count, uint offset, uint match) {
    uint body = 1 + more_bytes(count), rest = match ? match - MIN_MATCH : 0;
    if (get_local_id(0) == 0) out[0] = min(count, 15u) << 4 | min(rest, 15u);
    put_more(out + 1, count);
    copy(out + body, literals, count);
    body += count;
    if (!match) return body;
    if (get_local_id(0) == 0) { out[body] = offset; out[body + 1] = offset >> 8; }
    put_more(out + body + 2, rest);
    return body + 2 + more_bytes(rest);
}

kernel void sizes_coalesced(global const uchar *data, global uchar *slots, global uint *sizes, uint bytes) {
    local uint table[1 << HASH_BITS], nearest, seen, differs;
    uint lane = get_local_id(0), width = get_local_size(0), blocks = (bytes + BLOCK - 1) / BLOCK;
    for (uint b = get_group_id(0); b < blocks; b += get_num_groups(0)) {
        uint here = min(BLOCK, bytes - b * BLOCK), at = 0, anchor = 0, to = 0;
        global const uchar *in = data + b * BLOCK;
        global uchar *out = slots + (size_t)b * SLOT;
        for (uint i = lane; i < 1 << HASH_BITS; i += width) table[i] = 0;
        while (at + LAST_MATCH <= here) {
            uint own = at + lane, hash = 0, word = 0, candidate = 0;
            bool searches = lane < SEARCH && own + LAST_MATCH <= here;
            if (lane == 0) nearest = NONE;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (searches) {
                word = four_bytes(in + own);
                hash = word * 2654435761u >> (32 - HASH_BITS);
                /* Positions plus one. Of its own batch the table has nothing yet: the word before is looked at. */
                candidate = own >= 4 && four_bytes(in + own - 4) == word ? own - 3 : table[hash];
                if (candidate && four_bytes(in + candidate - 1) == word) atomic_min(&nearest, lane);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            uint hit = nearest;
            if (searches && lane <= hit) atomic_max(&table[hash], own + 1);
            if (lane == hit) seen = candidate - 1;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (hit == NONE) {
                at += SEARCH;
                continue;
            }
            uint from = seen, match = MIN_MATCH;
            at += hit;
            for (uint equal_bytes = width; equal_bytes == width; match += equal_bytes) {
                if (lane == 0) differs = width;
                barrier(CLK_LOCAL_MEM_FENCE);
                uint next = at + match + lane;
                if (next + LAST_LITERALS >= here || in[next] != in[from + match + lane]) atomic_min(&differs, lane);
                barrier(CLK_LOCAL_MEM_FENCE);
                equal_bytes = differs;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            while (at > anchor && from > 0 && in[at - 1] == in[from - 1]) { at--; from--; match++; }
            to += put_sequence(out + to, in + anchor, at - anchor, at - from, match);
            at += match;
            anchor = at;
        }
        to += put_sequence(out + to, in + anchor, here - anchor, 0, 0);
        if (lane == 0) sizes[b] = to;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void scatter_coalesced(
    global const uchar *slots, global const uint *starts, global uchar *payload, uint bytes
) {
    uint blocks = (bytes + BLOCK - 1) / BLOCK;
    for (uint b = get_group_id(0); b < blocks; b += get_num_groups(0))
        copy(payload + starts[b], slots + (size_t)b * SLOT, starts[b + 1] - starts[b]);
}

/* The length that begins with four bits, and goes on in bytes where all of them are set; `at` moves behind these. */
uint read_length(global const uchar *payload, uint *at, uint length) {
    if (length < 15) return length;
    uchar more;
    do { more = payload[(*at)++]; length += more; } while (more == 255);
    return length;
}

kernel void gather_coalesced(global const uchar *payload, global const uint *starts, global uchar *data, uint bytes) {
    uint lane = get_local_id(0), width = get_local_size(0), blocks = (bytes + BLOCK - 1) / BLOCK;
    for (uint b = get_group_id(0); b < blocks; b += get_num_groups(0)) {
        uint at = starts[b], end = starts[b + 1];
        global uchar *out = data + b * BLOCK;
        while (at < end) {
            uint token = payload[at++], literals = read_length(payload, &at, token >> 4);
            copy(out, payload + at, literals);
            out += literals;
            at += literals;
            if (at < end) {
                uint offset = payload[at] | (uint)payload[at + 1] << 8;
                at += 2;
                uint match = read_length(payload, &at, token & 15) + MIN_MATCH;
                barrier(CLK_GLOBAL_MEM_FENCE);
                for (uint i = lane; i < match; i += width) out[i] = *(out - offset + i % offset);
                out += match;
                barrier(CLK_GLOBAL_MEM_FENCE);
            }
        }
    }
}
