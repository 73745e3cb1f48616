// Records of complete work-groups, before they are sent to the trace file.
#pragma once
#include <vector>

#include "trace_records.h"

namespace capture {

struct Records {
  std::vector<BlockRecord> blocks;
  std::vector<WarpRecord> warps;
  std::vector<WarpOp> ops;
  std::vector<uint64_t> lines;
  void clear() { blocks.clear(), warps.clear(), ops.clear(), lines.clear(); }
};

}  // namespace capture
