#include "coalesce.h"

#include <algorithm>

namespace capture {
namespace {

struct Line {
  uint64_t number;
  uint64_t covered[2];  // a bit per byte
};

uint32_t sectors_accessed(const uint64_t* covered) {
  uint32_t mask = 0;
  for (int s = 0; s < 4; s++) mask |= uint32_t(uint32_t(covered[s / 2] >> 32 * (s % 2)) != 0) << s;
  return mask;
}

uint32_t sectors_whole(const uint64_t* covered) {
  uint32_t mask = 0;
  for (int s = 0; s < 4; s++) mask |= uint32_t(uint32_t(covered[s / 2] >> 32 * (s % 2)) == 0xFFFFFFFFu) << s;
  return mask;
}

void cover(Line& line, uint32_t first, uint32_t last) {
  for (uint32_t half = first / 64; half <= last / 64; half++) {
    uint32_t low = half == first / 64 ? first % 64 : 0, high = half == last / 64 ? last % 64 : 63;
    line.covered[half] |= ~uint64_t(0) << low & ~uint64_t(0) >> (63 - high);
  }
}

}  // namespace

int coalesce(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, bool is_store, uint64_t* lines) {
  Line accessed[MAX_OP_LINES];
  int n = 0, here = 0;
  for (int lane = 0; lane < n_lanes; lane++) {
    uint64_t address = addresses[lane], end = address + bytes_per_lane;
    while (address < end) {
      uint64_t number = address >> 7, last = std::min(end - 1, number << 7 | 127);
      if (n == 0 || accessed[here].number != number) {
        for (here = n - 1; here >= 0 && accessed[here].number != number;) here--;  // usually a recent one
        if (here < 0) accessed[here = n++] = {number, {0, 0}};
      }
      cover(accessed[here], address & 127, last & 127);
      address = last + 1;
    }
  }
  for (int i = 0; i < n; i++) {
    uint32_t whole = is_store ? sectors_whole(accessed[i].covered) : 0;
    lines[i] = accessed[i].number << 8 | whole << 4 | sectors_accessed(accessed[i].covered);
  }
  return n;
}

uint32_t atomic_conflicts(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane) {
  uint64_t sorted[WARP_LANES];
  std::sort(sorted, std::copy(addresses, addresses + n_lanes, sorted));
  uint32_t total = 0, run = 0, busiest = 0;
  for (int lane = 0; lane < n_lanes; lane++) {
    if (lane && sorted[lane] >> 5 != sorted[lane - 1] >> 5)
      total += busiest - 1, run = busiest = 0;
    else if (lane && sorted[lane] / bytes_per_lane != sorted[lane - 1] / bytes_per_lane)
      run = 0;
    busiest = std::max(busiest, ++run);
  }
  return n_lanes ? total + busiest - 1 : 0;
}

uint32_t bank_words(const uint64_t* addresses, int n_lanes, uint32_t bytes_per_lane, const uint64_t* lines, int n_lines) {
  constexpr uint32_t BANKS = 32, MAX_CYCLES = 32;  // banks of 4 B; conflict cycles saturate here
  uint64_t words[BANKS][WARP_LANES];
  uint32_t counts[BANKS] = {}, busiest = 0, cycles = 0, sectors = 0;
  int group_lanes = WARP_LANES;  // lanes that move 128 B
  while (group_lanes > 1 && group_lanes * bytes_per_lane > 128) group_lanes /= 2;
  for (int lane = 0; lane < n_lanes; lane++) {
    if (lane % group_lanes == 0) cycles += busiest, busiest = 0, std::fill(counts, counts + BANKS, 0);
    for (uint64_t word = addresses[lane] / 4; word <= (addresses[lane] + bytes_per_lane - 1) / 4; word++) {
      uint64_t* begin = words[word % BANKS];
      uint32_t& n = counts[word % BANKS];
      if (std::find(begin, begin + n, word) != begin + n) continue;
      begin[n++] = word;
      busiest = std::max(busiest, n);
    }
  }
  for (int i = 0; i < n_lines; i++) sectors += __builtin_popcount(lines[i] & 15);
  return (std::min(cycles + busiest, MAX_CYCLES) - std::min((sectors + 3) / 4, MAX_CYCLES)) % MAX_CYCLES;
}

}  // namespace capture
