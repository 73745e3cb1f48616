/* Zero-value compression of 32-bit words (Rhu et al., cDMA, HPCA 2018): a mask of 32 bits and the words that are not
 * zero, for each 32 words. Compaction is separate launches: sizes, their sums, scatter. No group waits for another. */

/* Chunked: every work-item has one contiguous run of groups of 32 words. */

kernel void sizes_chunked(global const uint *data, global uint *sizes, uint groups, uint per) {
    uint item = get_global_id(0), first = item * per, last = min(first + per, groups), words = 0;
    for (uint g = first; g < last; g++) {
        words++;
        for (uint i = 0; i < 32; i++) words += data[g * 32 + i] != 0;
    }
    sizes[item] = words;
}

kernel void scatter_chunked(global const uint *data, global const uint *starts, global uint *payload, uint groups, uint per) {
    uint item = get_global_id(0), first = item * per, last = min(first + per, groups), at = starts[item];
    for (uint g = first; g < last; g++) {
        uint mask = 0, to = at + 1;
        for (uint i = 0; i < 32; i++) {
            uint word = data[g * 32 + i];
            if (word) { mask |= 1u << i; payload[to++] = word; }
        }
        payload[at] = mask;
        at = to;
    }
}

kernel void gather_chunked(global const uint *payload, global const uint *starts, global uint *data, uint groups, uint per) {
    uint item = get_global_id(0), first = item * per, last = min(first + per, groups), at = starts[item];
    for (uint g = first; g < last; g++) {
        uint mask = payload[at++];
        for (uint i = 0; i < 32; i++) data[g * 32 + i] = mask >> i & 1 ? payload[at++] : 0;
    }
}

/* The last words, fewer than a group: a mask of as many bits, and the words right behind it. One work-item. */

kernel void scatter_tail(
    global const uint *data, global const uint *starts, global uint *payload, uint groups, uint tail, uint parts
) {
    uint at = starts[parts];
    ulong bits = 0;
    for (uint i = 0; i < tail; i++) bits |= (ulong)(data[groups * 32 + i] != 0) << i;
    for (uint i = 0; i < tail; i++) {
        uint word = data[groups * 32 + i];
        if (word) { bits |= (ulong)word << tail; payload[at++] = bits; bits >>= 32; }
    }
    payload[at] = bits;
}

kernel void gather_tail(
    global const uint *payload, global const uint *starts, global uint *data, uint groups, uint tail, uint parts
) {
    uint at = starts[parts], mask = payload[at] & ((1u << tail) - 1), low = payload[at++] >> tail;
    for (uint i = 0; i < tail; i++) {
        uint word = 0;
        if (mask >> i & 1) {
            uint next = payload[at++];
            word = low | next << (32 - tail);
            low = next >> tail;
        }
        data[groups * 32 + i] = word;
    }
}


/* Coalesced: a work-group has one window of WINDOW groups after the other; neighbouring items read neighbouring words. */
#define WINDOW 32

kernel void sizes_coalesced(global const uint *data, global uint *sizes, uint groups) {
    local uint counts[128];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (groups + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint words = min((uint)WINDOW, groups - w * WINDOW) * 32, count = 0;
        for (uint i = lane; i < words; i += width) count += data[w * WINDOW * 32 + i] != 0;
        counts[lane] = count;
        for (uint half_ = width / 2; half_; half_ /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < half_) counts[lane] += counts[lane + half_];
        }
        if (lane == 0) sizes[w] = counts[0] + words / 32;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void scatter_coalesced(global const uint *data, global const uint *starts, global uint *payload, uint groups) {
    local uint words_[WINDOW * 32], masks[WINDOW], at[WINDOW + 1], packed[WINDOW * 33];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (groups + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint here = min((uint)WINDOW, groups - w * WINDOW);
        for (uint i = lane; i < here * 32; i += width) words_[i] = data[w * WINDOW * 32 + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint g = lane; g < here; g += width) {
            uint mask = 0;
            for (uint i = 0; i < 32; i++) mask |= (uint)(words_[g * 32 + i] != 0) << i;
            masks[g] = mask;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) { uint sum = 0; for (uint g = 0; g < here; g++) { at[g] = sum; sum += 1 + popcount(masks[g]); } at[here] = sum; }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < here * 32; i += width) {
            uint g = i / 32, bit = i % 32;
            if (bit == 0) packed[at[g]] = masks[g];
            if (masks[g] >> bit & 1) packed[at[g] + 1 + popcount(masks[g] & ((1u << bit) - 1))] = words_[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < at[here]; i += width) payload[starts[w] + i] = packed[i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void gather_coalesced(global const uint *payload, global const uint *starts, global uint *data, uint groups) {
    local uint packed[WINDOW * 33], at[WINDOW];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (groups + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint here = min((uint)WINDOW, groups - w * WINDOW), size = starts[w + 1] - starts[w];
        for (uint i = lane; i < size; i += width) packed[i] = payload[starts[w] + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) { uint sum = 0; for (uint g = 0; g < here; g++) { at[g] = sum; sum += 1 + popcount(packed[sum]); } }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < here * 32; i += width) {
            uint mask = packed[at[i / 32]], bit = i % 32;
            data[w * WINDOW * 32 + i] = mask >> bit & 1 ? packed[at[i / 32] + 1 + popcount(mask & ((1u << bit) - 1))] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
