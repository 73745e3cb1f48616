// Coalescing: from the addresses of a warp's active lanes to 128 B lines with sector masks. The reference model is
// tests/reference/trace/ref_coalesce.py.
#pragma once
#include <cstdint>

namespace capture {

constexpr int WARP_LANES = 32, MAX_OP_LINES = 64;

// Writes the lines in the order in which lanes first access them; returns their number. 1 to 128 bytes per lane.
int coalesce(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, bool is_store, uint64_t* lines);

// Conflicts of an atomic: the sum over its sectors of the lanes beyond the first at the busiest word.
uint32_t atomic_conflicts(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane);

// Cycles of the banks beyond those that deliver the sectors without conflicts, modulo 32.
uint32_t bank_words(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, const uint64_t* lines, int n_lines);

}  // namespace capture
