// The log of a work-item that its warp has not processed yet: entered blocks, accessed addresses.
#pragma once
#include <cstdint>
#include <vector>

namespace capture {

struct LaneLog {
  std::vector<uint32_t> blocks;
  std::vector<uint64_t> accesses;
  size_t n_blocks = 0, n_accesses = 0;        // logged
  size_t next_block = 0, next_access = 0;     // not processed yet
};

// Continues the work-item of a lane until its log has new entries, or until a barrier or its end.
class LaneSource {
 public:
  virtual ~LaneSource() = default;
  virtual void more(int lane) = 0;
  virtual void to_barrier_or_end(int lane) = 0;
};

}  // namespace capture
