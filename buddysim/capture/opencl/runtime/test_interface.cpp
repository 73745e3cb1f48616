// For tests: builds a warp from complete logs, without a program. tests/capture/opencl compares it with ref_warp.py.
#include <cstring>
#include <vector>

#include "warp.h"

using namespace capture;

namespace {

struct CompleteLogs : LaneSource {
  void more(int) override {}
  void to_barrier_or_end(int) override {}
};

}  // namespace

// `kernel_words`: see table.h. `n_blocks` and `n_accesses` have a count per lane; `blocks` and `accesses` hold the lanes'
// entries one after the other. Writes the operations and their lines; returns the number of operations, or -1 if there are
// more than `capacity` operations or lines.
extern "C" __attribute__((visibility("default"))) int capture_warp_from_logs(
    const uint32_t* kernel_words, int n_lanes, const uint32_t* n_blocks, const uint32_t* blocks,
    const uint32_t* n_accesses, const uint64_t* accesses, uint64_t memory_end, WarpRecord* warp, WarpOp* ops,
    uint64_t* lines, int capacity) {
  Kernel kernel = WordReader(kernel_words).kernel();
  std::vector<LaneLog> logs(n_lanes);
  for (int lane = 0; lane < n_lanes; lane++) {
    logs[lane].blocks.assign(blocks, blocks + n_blocks[lane]);
    logs[lane].accesses.assign(accesses, accesses + n_accesses[lane]);
    logs[lane].n_blocks = n_blocks[lane], logs[lane].n_accesses = n_accesses[lane];
    blocks += n_blocks[lane], accesses += n_accesses[lane];
  }
  CompleteLogs source;
  AddressMap map({{1 << 12, memory_end, 1 << 12}});
  CapturedWarp one;
  Records records;
  try {
    one.start(kernel, n_lanes, logs.data());
    while (one.run(source, map) != CapturedWarp::ENDED) {
    }
  } catch (const std::logic_error&) {
    return -2;
  }
  one.append_to(records, 0);
  if (records.ops.size() > size_t(capacity) || records.lines.size() > size_t(capacity)) return -1;
  *warp = records.warps[0];
  memcpy(ops, records.ops.data(), records.ops.size() * sizeof(WarpOp));
  memcpy(lines, records.lines.data(), records.lines.size() * sizeof(uint64_t));
  return records.ops.size();
}
