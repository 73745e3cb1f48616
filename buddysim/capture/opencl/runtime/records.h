// The records of buddysim/trace/records.pxd.
#pragma once
#include <cstdint>
#include <vector>

namespace capture {

enum : uint8_t { BYPASS_L1 = 1, TIMED = 2 };

struct WarpOp {
  uint32_t first_line, gap, chain_cycles, chain_steps, use_distance, use_cycles;
  uint16_t use_steps;
  uint8_t n_lines, kind, bytes_per_lane, flags;
  uint16_t reserved;
};

struct WarpRecord {
  uint32_t warp, first_op, n_ops, tail_gap, tail_cycles, tail_steps;
};

struct BlockRecord {
  uint32_t block, first_warp, n_warps;
};

static_assert(sizeof(WarpOp) == 32 && sizeof(WarpRecord) == 24 && sizeof(BlockRecord) == 12, "as in records.py");

struct Records {
  std::vector<BlockRecord> blocks;
  std::vector<WarpRecord> warps;
  std::vector<WarpOp> ops;
  std::vector<uint64_t> lines;
  void clear() { blocks.clear(), warps.clear(), ops.clear(), lines.clear(); }
};

}  // namespace capture
