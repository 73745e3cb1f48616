// What a work-item did and the warp has not yet taken in: blocks that it entered, addresses that it accessed.
#pragma once
#include <cstdint>
#include <vector>

namespace capture {

struct LaneLog {
  std::vector<uint32_t> blocks;
  std::vector<uint64_t> accesses;
  size_t n_blocks = 0, n_accesses = 0;        // logged
  size_t next_block = 0, next_access = 0;     // to be taken in
};

// Lets the work-item of a lane go on, until its log has something new or it stands at a barrier or its end.
class LaneSource {
 public:
  virtual ~LaneSource() = default;
  virtual void more(int lane) = 0;
  virtual void to_barrier_or_end(int lane) = 0;
};

}  // namespace capture
