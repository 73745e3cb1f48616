// Where a buffer that a kernel may access lies, and where the trace says it lies.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace capture {

struct Place {
  uint64_t begin, end;  // in this process
  uint64_t base;        // in the trace
};

class Places {
 public:
  explicit Places(std::vector<Place> places) : places_(std::move(places)) {
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  }

  // The trace's address of `bytes` bytes, or 0 where they don't lie in a buffer.
  uint64_t traced(uint64_t address, uint32_t bytes) {
    if (places_.empty()) return 0;
    const Place* place = &places_[last_];
    if (address < place->begin || address >= place->end) {
      auto after = std::upper_bound(places_.begin(), places_.end(), address,
                                    [](uint64_t a, const Place& p) { return a < p.begin; });
      if (after == places_.begin()) return 0;
      last_ = after - places_.begin() - 1;
      place = &places_[last_];
    }
    return address + bytes <= place->end ? address - place->begin + place->base : 0;
  }

 private:
  std::vector<Place> places_;
  size_t last_ = 0;
};

}  // namespace capture
