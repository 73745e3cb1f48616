// The addresses of a warp's active lanes -> 128 B lines with sector masks; tests/reference/trace/ref_coalesce.py is the
// readable twin.
#pragma once
#include <cstdint>

namespace capture {

constexpr int WARP_LANES = 32, MAX_OP_LINES = 64;

// Writes the lines in the order in which lanes first touch them; gives their number. 1 to 128 bytes per lane.
int coalesce(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, bool is_store, uint64_t* lines);

// How often an atomic's lanes meet at a word: over its sectors, the lanes of the busiest word beyond the first.
uint32_t atomic_conflicts(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane);

// Turns of banks of words beyond those in which they would deliver the sectors whole: modulo 32.
uint32_t bank_words(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, const uint64_t* lines, int n_lines);

}  // namespace capture
