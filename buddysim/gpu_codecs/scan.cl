/* Exclusive sums by one work-group: the start of each part of a payload. */
kernel void scan(global const uint *sizes, global uint *starts, uint count) {
    local uint totals[256];
    uint lane = get_local_id(0), width = get_local_size(0), before = 0;
    for (uint base = 0; base < count; base += width) {
        uint own = base + lane < count ? sizes[base + lane] : 0;
        totals[lane] = own;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint reach = 1; reach < width; reach *= 2) {
            uint left = lane >= reach ? totals[lane - reach] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            totals[lane] += left;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (base + lane < count) starts[base + lane] = before + totals[lane] - own;
        before += totals[width - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
