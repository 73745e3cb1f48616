/* Compressed sparse rows of 32-bit words: for each window a pointer (the number of nonzero words), their columns, the words.
 * Compaction is separate launches: sizes, their sums, scatter. No group waits for another. `starts` counts nonzero words. */
#define WINDOW 1024

/* Chunked: every work-item has one contiguous run of units, which are whole windows or power-of-two parts of one. */

kernel void sizes_chunked(global const uint *data, global uint *sizes, uint words, uint unit, uint per) {
    uint units = (words + unit - 1) / unit, first = get_global_id(0) * per;
    for (uint u = first; u < min(first + per, units); u++) {
        uint count = 0;
        for (uint i = u * unit; i < min((u + 1) * unit, words); i++) count += data[i] != 0;
        sizes[u] = count;
    }
}

kernel void scatter_chunked(
    global const uint *data, global const uint *starts, global uint *payload, uint words, uint unit, uint per
) {
    uint units = (words + unit - 1) / unit, first = get_global_id(0) * per;
    for (uint u = first; u < min(first + per, units); u++) {
        uint window = u * unit / WINDOW, head = window * WINDOW / unit, end = min(head + WINDOW / unit, units);
        uint before = starts[head], nonzeros = starts[end] - before, base = window + 2 * before;
        uint at = base + 1 + starts[u] - before;
        if (u == head) payload[base] = nonzeros;
        for (uint i = u * unit; i < min((u + 1) * unit, words); i++) {
            uint word = data[i];
            if (word) { payload[at] = i % WINDOW; payload[at++ + nonzeros] = word; }
        }
    }
}

kernel void gather_chunked(
    global const uint *payload, global const uint *starts, global uint *data, uint words, uint unit, uint per
) {
    uint units = (words + unit - 1) / unit, first = get_global_id(0) * per;
    for (uint u = first; u < min(first + per, units); u++) {
        uint window = u * unit / WINDOW, head = window * WINDOW / unit, end = min(head + WINDOW / unit, units);
        uint before = starts[head], nonzeros = starts[end] - before;
        uint at = window + 2 * before + 1 + starts[u] - before, last = at + starts[u + 1] - starts[u];
        uint column = at < last ? payload[at] : WINDOW;
        for (uint i = u * unit; i < min((u + 1) * unit, words); i++) {
            if (i % WINDOW == column) {
                data[i] = payload[at++ + nonzeros];
                column = at < last ? payload[at] : WINDOW;
            } else data[i] = 0;
        }
    }
}


/* Coalesced: a work-group has one window after the other; neighbouring items read neighbouring words. */

kernel void sizes_coalesced(global const uint *data, global uint *sizes, uint words) {
    local uint counts[128];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (words + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint here = min((uint)WINDOW, words - w * WINDOW), count = 0;
        for (uint i = lane; i < here; i += width) count += data[w * WINDOW + i] != 0;
        counts[lane] = count;
        for (uint half_ = width / 2; half_; half_ /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < half_) counts[lane] += counts[lane + half_];
        }
        if (lane == 0) sizes[w] = counts[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void scatter_coalesced(global const uint *data, global const uint *starts, global uint *payload, uint words) {
    local uint tile[WINDOW], masks[WINDOW / 32], before[WINDOW / 32], columns[WINDOW], values[WINDOW];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (words + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint here = min((uint)WINDOW, words - w * WINDOW), nonzeros = starts[w + 1] - starts[w], base = w + 2 * starts[w];
        for (uint i = lane; i < WINDOW; i += width) tile[i] = i < here ? data[w * WINDOW + i] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint g = lane; g < WINDOW / 32; g += width) {
            uint mask = 0;
            for (uint i = 0; i < 32; i++) mask |= (uint)(tile[g * 32 + i] != 0) << i;
            masks[g] = mask;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) {
            uint sum = 0;
            for (uint g = 0; g < WINDOW / 32; g++) { before[g] = sum; sum += popcount(masks[g]); }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < here; i += width) {
            uint g = i / 32, bit = i % 32;
            if (masks[g] >> bit & 1) {
                uint rank = before[g] + popcount(masks[g] & ((1u << bit) - 1));
                columns[rank] = i;
                values[rank] = tile[i];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) payload[base] = nonzeros;
        for (uint k = lane; k < nonzeros; k += width) payload[base + 1 + k] = columns[k];
        for (uint k = lane; k < nonzeros; k += width) payload[base + 1 + nonzeros + k] = values[k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void gather_coalesced(global const uint *payload, global const uint *starts, global uint *data, uint words) {
    local uint tile[WINDOW];
    uint lane = get_local_id(0), width = get_local_size(0), windows = (words + WINDOW - 1) / WINDOW;
    for (uint w = get_group_id(0); w < windows; w += get_num_groups(0)) {
        uint here = min((uint)WINDOW, words - w * WINDOW), nonzeros = starts[w + 1] - starts[w], base = w + 2 * starts[w];
        for (uint i = lane; i < here; i += width) tile[i] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = lane; k < nonzeros; k += width) tile[payload[base + 1 + k]] = payload[base + 1 + nonzeros + k];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < here; i += width) data[w * WINDOW + i] = tile[i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
