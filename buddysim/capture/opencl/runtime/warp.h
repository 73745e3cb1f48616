// Regroups lanes that ran one by one into a warp. Lanes that take the same side of a branch stay together; lanes that
// diverge reconverge at the branch's immediate post-dominator, as on a GPU with a reconvergence stack.
// The reference model is tests/reference/capture/opencl/ref_warp.py.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "../table.h"
#include "coalesce.h"
#include "lane_log.h"
#include "address_map.h"
#include "records.h"

namespace capture {

class CapturedWarp {
 public:
  enum State { AT_BARRIER, ENDED };

  void start(const Kernel& kernel, int n_lanes, LaneLog* logs);
  State run(LaneSource& source, AddressMap& map);
  State state() const { return state_; }
  uint64_t lane_accesses() const { return lane_accesses_; }
  uint64_t outside() const { return outside_; }  // lane accesses that no buffer holds
  void append_to(Records& records, uint32_t number) const;

 private:
  struct Path {  // lanes that execute together
    uint32_t mask;
    uint32_t block, join;  // the current block; the block where they reconverge with other lanes
    uint32_t site;         // index of the block's next access site
  };
  struct Loaded {  // an operation without a first use so far
    uint32_t op = NOWHERE;
    uint64_t instructions, cycles, hops;  // at its issue
  };

  void enter(const CfgBlock& block);
  bool run_to_barrier(Path path, LaneSource& source, AddressMap& map);
  void access(const AccessSite& site, uint32_t number, uint32_t mask, LaneSource& source, AddressMap& map);
  void barrier(const AccessSite& site);
  void leave(Path path, LaneSource& source);
  uint32_t next_block(int lane, LaneSource& source);
  uint64_t next_access(int lane, LaneSource& source);
  void pass(const ComputeGap& gap);
  WarpOp& add_op(const AccessSite& site);
  uint32_t unit_busy_slots(uint64_t instructions) const;

  const Kernel* kernel_ = nullptr;
  LaneLog* logs_ = nullptr;
  State state_ = ENDED;
  uint32_t live_ = 0;                     // lanes that have not ended
  uint32_t waiting_ = 0;                  // live lanes at a barrier that others have not reached
  std::vector<Path> stack_, waiting_paths_;
  std::vector<WarpOp> ops_;
  std::vector<uint64_t> lines_;
  std::vector<Loaded> loaded_;            // by site
  ComputeGap since_;                      // since the last operation
  uint64_t instructions_ = 0, cycles_ = 0, hops_ = 0, lane_accesses_ = 0, outside_ = 0;
};

}  // namespace capture
