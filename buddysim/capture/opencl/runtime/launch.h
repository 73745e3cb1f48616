// Runs a kernel launch work-group by work-group: one fiber per work-item, regrouped into warps as they run.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "fiber.h"
#include "lane_log.h"
#include "module.h"
#include "address_map.h"
#include "records.h"
#include "warp.h"

namespace capture {

struct Shape {
  uint32_t dimensions;
  uint64_t offset[3], groups[3], local[3];
  uint64_t work_items() const { return local[0] * local[1] * local[2]; }
};

class LaunchRunner : private LaneSource {
 public:
  // `emit` receives the records of complete work-groups and clears them.
  using Emit = std::function<void(Records&)>;
  LaunchRunner(Module& module, const Kernel& kernel, const Shape& shape, void** arguments, std::vector<BufferRange> buffers);
  void run(const Emit& emit);
  uint64_t lane_accesses = 0, outside = 0;
  std::string printed;

 private:
  struct Item {
    LaunchRunner* launch;
    uint64_t id[3];
    bool at_barrier = false;
    std::unique_ptr<Fiber> fiber;
  };

  void more(int lane) override;
  void to_barrier_or_end(int lane) override;
  void run_group(Records& records, uint32_t number);
  void resume(size_t item);
  static void body(void* item);
  static void log_full();
  static void wait();

  Module& module_;
  const Kernel& kernel_;
  Shape shape_;
  void** arguments_;
  AddressMap addresses_;
  Module::Entry entry_;
  std::vector<Item> items_;
  std::vector<LaneLog> logs_;  // of the running warp: other warps have processed their logs
  std::vector<CapturedWarp> warps_;
  size_t current_ = 0;    // index of the running work-item
  size_t warp_first_ = 0;  // index of the running warp's first work-item
};

}  // namespace capture
