// Addresses of buffers in the trace, equal in every run and similar to those of a GPU's allocator. Buffers below 1 MiB
// share pages of 2 MiB at multiples of 512 B. Larger ones begin at pages of their own. Freed addresses are used again,
// the lowest first.
#pragma once
#include <cstdint>
#include <map>

namespace capture {

class Addresses {
 public:
  uint64_t allocate(uint64_t bytes);
  void release(uint64_t base);

 private:
  static constexpr uint64_t FIRST = 0x7F0000000000ull, PAGE = 2 << 20, SMALL = 1 << 20, GRAIN = 512;
  static uint64_t rounded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }
  std::map<uint64_t, uint64_t> taken_pages_, taken_;  // base -> end; pages: large buffers and pages of small ones
  std::map<uint64_t, unsigned> small_in_page_;
  static uint64_t first_fit(const std::map<uint64_t, uint64_t>& taken, uint64_t first, uint64_t bytes);
};

}  // namespace capture
