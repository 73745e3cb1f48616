/* Run-length encoding of zeros in windows of 32-bit words: segments of a byte that counts zeros, a byte that counts other
 * words, and these; here in units of 16 bits. A run of over LONGEST words is several segments. Compaction is separate
 * launches: sizes, their sums, scatter. No group waits for another. */
#define WINDOW 1024
#define LONGEST 255

/* Chunked: every work-item has one contiguous run of words. A segment that began before is finished by its `rest`. */

/* Words from i on that are zero, or that aren't, as the first: at most so many, up to the end. */
uint alike(global const uint *data, uint i, uint end, uint most) {
    uint count = 0;
    bool zero = data[i] == 0;
    while (i + count < end && count < most && (data[i + count] == 0) == zero) count++;
    return count;
}

/* How many words of its run come before word i in its window. */
uint run_before(global const uint *data, uint i) {
    uint first = i / WINDOW * WINDOW, from = i;
    while (from > first && (data[from - 1] == 0) == (data[i] == 0)) from--;
    return i - from;
}

/* Zeros and, from bit 8 on, others from word i to the end of its segment, with so many words of its run before it. */
uint rest_of(global const uint *data, uint i, uint before, uint words) {
    uint end = min((i / WINDOW + 1) * WINDOW, words), zeros = 0, others = 0;
    if (data[i] == 0) {
        zeros = alike(data, i, end, LONGEST - before % LONGEST);
        i += zeros;
        before = 0;
    }
    if (i < end && data[i]) others = alike(data, i, end, LONGEST - before % LONGEST);
    return zeros | others << 8;
}

bool begins_segment(global const uint *data, uint i, uint before) {
    return before % LONGEST == 0 && (data[i] == 0 || before || i % WINDOW == 0);
}

kernel void sizes_chunked(global const uint *data, global uint *sizes, uint words, uint per) {
    uint item = get_global_id(0), i = min(item * per, words), last = min(i + per, words), size = 0;
    uint before = i < last ? run_before(data, i) : 0;
    bool head = i < last && begins_segment(data, i, before);
    while (i < last) {
        uint rest = rest_of(data, i, before, words), zeros = min(rest & 255, last - i);
        size += head + 2 * min(rest >> 8, last - i - zeros);
        i += (rest & 255) + (rest >> 8);
        before = 0;
        head = true;
    }
    sizes[item] = size;
}

kernel void scatter_chunked(
    global const uint *data, global const uint *starts, global ushort *payload, global uint *rests, uint words, uint per
) {
    uint item = get_global_id(0), i = min(item * per, words), last = min(i + per, words), at = starts[item];
    uint before = i < last ? run_before(data, i) : 0;
    bool head = i < last && begins_segment(data, i, before);
    while (i < last) {
        uint rest = rest_of(data, i, before, words), zeros = min(rest & 255, last - i);
        uint others = min(rest >> 8, last - i - zeros);
        if (head) payload[at++] = rest;
        else rests[item] = rest;
        for (uint k = 0; k < others; k++) {
            uint word = data[i + zeros + k];
            payload[at++] = word;
            payload[at++] = word >> 16;
        }
        i += (rest & 255) + (rest >> 8);
        before = 0;
        head = true;
    }
}

kernel void gather_chunked(
    global const ushort *payload, global const uint *starts, global const uint *rests, global uint *data, uint words,
    uint per
) {
    uint item = get_global_id(0), i = min(item * per, words), last = min(i + per, words), at = starts[item];
    uint rest = rests[item];
    while (i < last) {
        if (rest == 0) rest = payload[at++];
        uint zeros = min(rest & 255, last - i), others = min(rest >> 8, last - i - zeros);
        for (uint k = 0; k < zeros; k++) data[i++] = 0;
        for (uint k = 0; k < others; k++, at += 2) data[i++] = payload[at] | (uint)payload[at + 1] << 16;
        rest = 0;
    }
}


/* Coalesced: a work-group has one window after the other; neighbouring items read neighbouring words. */
#define GROUPS (WINDOW / 32)
#define LONGEST_CODE (2 * WINDOW + WINDOW / LONGEST + 2)
#define MAX_SEGMENTS (WINDOW / 2 + WINDOW / LONGEST + 2)

/* Loads a window and finds, bit by bit, the nonzero words (nonzeros), where runs begin and where segments do
 * (heads), and where the payload of each 32 words begins (at). All work-items of a group call it; inlined, since
 * PoCL gets barriers in functions that it calls wrong. */
__attribute__((always_inline)) void find_segments(
    global const uint *data, uint here, local uint *tile, local uint *nonzeros, local uint *runs, local uint *heads,
    local uint *at
) {
    uint lane = get_local_id(0), width = get_local_size(0);
    for (uint i = lane; i < WINDOW; i += width) tile[i] = i < here ? data[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint g = lane; g < GROUPS; g += width) {
        uint mask = 0;
        for (uint i = 0; i < 32; i++) mask |= (uint)(tile[g * 32 + i] != 0) << i;
        nonzeros[g] = mask;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint g = lane; g < GROUPS; g += width) {
        uint left = g ? nonzeros[g - 1] >> 31 : ~nonzeros[0] & 1;
        runs[g] = nonzeros[g] ^ (nonzeros[g] << 1 | left);
    }
    if (lane == 0) runs[GROUPS] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint g = lane; g < GROUPS; g += width) {
        uint mask = 0, from = 0;
        for (uint k = g; k > 0 && !from; k--)
            if (runs[k - 1]) from = k * 32 - 1 - clz(runs[k - 1]);
        for (uint bit = 0; bit < 32 && g * 32 + bit < here; bit++) {
            uint i = g * 32 + bit;
            if (runs[g] >> bit & 1) from = i;
            uint before = i - from;
            mask |= (uint)(before % LONGEST == 0 && (!(nonzeros[g] >> bit & 1) || before || i == 0)) << bit;
        }
        heads[g] = mask;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        uint sum = 0;
        for (uint g = 0; g < GROUPS; g++) { at[g] = sum; sum += popcount(heads[g]) + 2 * popcount(nonzeros[g]); }
        at[GROUPS] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Words from i on to the end of its run, at most LONGEST. */
uint run_from(local const uint *runs, uint i, uint here) {
    uint g = (i + 1) / 32, later = runs[g] >> (i + 1) % 32 << (i + 1) % 32;
    while (!later) later = runs[++g];
    uint next = g * 32 + 31 - clz(later & -later);
    return min(min(next, here) - i, (uint)LONGEST);
}

kernel void sizes_coalesced(global const uint *data, global uint *sizes, uint words) {
    local uint tile[WINDOW], nonzeros[GROUPS], runs[GROUPS + 1], heads[GROUPS], at[GROUPS + 1];
    uint windows = (words + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        find_segments(data + w * WINDOW, min((uint)WINDOW, words - w * WINDOW), tile, nonzeros, runs, heads, at);
        if (get_local_id(0) == 0) sizes[w] = at[GROUPS];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void scatter_coalesced(global const uint *data, global const uint *starts, global ushort *payload, uint words) {
    local uint tile[WINDOW], nonzeros[GROUPS], runs[GROUPS + 1], heads[GROUPS], at[GROUPS + 1];
    local ushort packed[LONGEST_CODE];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (words + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint here = min((uint)WINDOW, words - w * WINDOW);
        find_segments(data + w * WINDOW, here, tile, nonzeros, runs, heads, at);
        for (uint i = lane; i < here; i += width) {
            uint g = i / 32, bit = i % 32, below = (1u << bit) - 1;
            uint to = at[g] + popcount(heads[g] & below) + 2 * popcount(nonzeros[g] & below);
            if (heads[g] >> bit & 1) {
                uint zeros = nonzeros[g] >> bit & 1 ? 0 : run_from(runs, i, here), next = i + zeros;
                bool others = next < here && nonzeros[next / 32] >> next % 32 & 1;
                packed[to++] = zeros | (others ? run_from(runs, next, here) : 0) << 8;
            }
            if (nonzeros[g] >> bit & 1) { packed[to] = tile[i]; packed[to + 1] = tile[i] >> 16; }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < at[GROUPS]; i += width) payload[starts[w] + i] = packed[i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void gather_coalesced(global const ushort *payload, global const uint *starts, global uint *data, uint words) {
    local uint tile[WINDOW], count;
    local ushort packed[LONGEST_CODE], from[MAX_SEGMENTS], to[MAX_SEGMENTS];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (words + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint here = min((uint)WINDOW, words - w * WINDOW), size = starts[w + 1] - starts[w];
        for (uint i = lane; i < size; i += width) packed[i] = payload[starts[w] + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) {
            uint segments = 0;
            for (uint at = 0, i = 0; at < size; segments++) {
                from[segments] = at;
                to[segments] = i;
                i += (packed[at] & 255) + (packed[at] >> 8);
                at += 1 + 2 * (packed[at] >> 8);
            }
            count = segments;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint s = lane; s < count; s += width) {
            uint at = from[s], i = to[s], zeros = packed[at] & 255, others = packed[at] >> 8;
            for (uint k = 0; k < zeros; k++) tile[i++] = 0;
            for (uint k = 0; k < others; k++) tile[i++] = packed[at + 1 + 2 * k] | (uint)packed[at + 2 + 2 * k] << 16;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < here; i += width) data[w * WINDOW + i] = tile[i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
