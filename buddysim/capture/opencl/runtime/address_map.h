// Addresses of this process -> addresses in the trace, for the buffers that a kernel may access.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace capture {

struct BufferRange {
  uint64_t begin, end;  // in this process
  uint64_t base;        // in the trace
};

class AddressMap {
 public:
  explicit AddressMap(std::vector<BufferRange> ranges) : ranges_(std::move(ranges)) {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const BufferRange& a, const BufferRange& b) { return a.begin < b.begin; });
  }

  // The trace's address of `bytes` bytes, or 0 where they don't lie in a buffer.
  uint64_t traced(uint64_t address, uint32_t bytes) {
    if (ranges_.empty()) return 0;
    const BufferRange* range = &ranges_[last_];
    if (address < range->begin || address >= range->end) {
      auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                    [](uint64_t a, const BufferRange& r) { return a < r.begin; });
      if (after == ranges_.begin()) return 0;
      last_ = after - ranges_.begin() - 1;
      range = &ranges_[last_];
    }
    return address + bytes <= range->end ? address - range->begin + range->base : 0;
  }

 private:
  std::vector<BufferRange> ranges_;
  size_t last_ = 0;
};

}  // namespace capture
