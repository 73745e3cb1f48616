"""Set-up of compressed entries, and their counters."""
#: Counters of every scheme that compresses: unit, colon, definition.
COUNTERS = {
    "sizes.class_changes": "write-backs: Write-backs that change the size class of their entry.",
    "sizes.class_increases": "write-backs: Write-backs that move their entry to a larger size class.",
    "sizes.class_decreases": "write-backs: Write-backs that move their entry to a smaller size class.",
}

LAWS = ("`sizes.class_changes` = `sizes.class_increases` + `sizes.class_decreases`",)


cdef int entries_init(CompressedEntries* entries, dict n) except -1:
    """Tabulates splits and plans for all arguments; `n`: `compressed_numbers`."""
    cdef int size_known, device_sectors, size_class
    cdef unsigned int requested
    entries.compressor.latency_ps, entries.compressor.cost = n["compressor_ps"], n["compressor_cost"]
    entries.fetch_whole_raw_entry, entries.eight_byte_class = n["fetch_whole_raw_entry"], n["eight_byte_class"]
    entries.single_raw_sectors = n["single_raw_sectors"]
    for device_sectors in range(5):
        for size_class in range(8):
            entries.splits[8 * device_sectors + size_class] = sector_split(entries, device_sectors, size_class)
            for size_known in range(2):
                for requested in range(16):
                    plan_at(entries, size_known, device_sectors, requested, size_class)[0] = plan_fill(
                        entries, size_known, device_sectors, requested, size_class)
    return 0


cdef dict entries_counters(const CompressedEntries* entries):
    """Values of `COUNTERS`."""
    cdef const CompressedCounters* count = &entries.count
    return {
        "sizes.class_changes": count.class_increases + count.class_decreases,
        "sizes.class_increases": count.class_increases,
        "sizes.class_decreases": count.class_decreases,
    }
