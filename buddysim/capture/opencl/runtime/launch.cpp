#include "launch.h"

#include <cstdlib>

namespace capture {
namespace {

constexpr size_t FIRST_LOG = 1024;
constexpr size_t STACK_BYTES = 256 << 10;
constexpr size_t PRINTF_BYTES = 1 << 20;
constexpr size_t BATCH_LINES = 1 << 16;

LaunchRunner* running;

// Entries that a work-item logs before its warp processes them. Work-items run as far as they can, in order, as in PoCL;
// a longer log would need more memory, a shorter one more switches.
size_t longest_log() {
  static size_t entries = [] {
    const char* text = getenv("BUDDYSIM_CAPTURE_LOG");
    size_t value = text ? strtoul(text, nullptr, 10) : 0;
    return value ? value : size_t(16384);
  }();
  return entries;
}

}  // namespace

LaunchRunner::LaunchRunner(Module& module, const Kernel& kernel, const Shape& shape, void** arguments,
               std::vector<BufferRange> buffers)
    : module_(module), kernel_(kernel), shape_(shape), arguments_(arguments), addresses_(std::move(buffers)),
      entry_(module.entry(kernel.name)) {
  size_t n = shape.work_items();
  items_.resize(n);
  logs_.resize(WARP_LANES);
  warps_.resize((n + WARP_LANES - 1) / WARP_LANES);
  size_t i = 0;
  for (uint64_t z = 0; z < shape.local[2]; z++)
    for (uint64_t y = 0; y < shape.local[1]; y++)
      for (uint64_t x = 0; x < shape.local[0]; x++, i++) {
        items_[i].launch = this;
        items_[i].id[0] = x, items_[i].id[1] = y, items_[i].id[2] = z;
        items_[i].fiber = std::make_unique<Fiber>(STACK_BYTES + 4 * size_t(kernel.private_bytes), i);
      }
}

void LaunchRunner::run(const Emit& emit) {
  running = this;
  for (int d = 0; d < 3; d++) {
    *module_.local_size[d] = shape_.local[d];
    *module_.num_groups[d] = shape_.groups[d];
    *module_.global_offset[d] = shape_.offset[d];
  }
  *module_.work_dim = shape_.dimensions;
  *module_.log_full = log_full;
  *module_.wait = wait;
  std::vector<char> print_buffer(PRINTF_BYTES);
  uint32_t print_position = 0;
  *module_.printf_buffer = print_buffer.data();
  *module_.printf_capacity = print_buffer.size();
  *module_.printf_position = &print_position;
  Records records;
  uint32_t number = 0;
  for (uint64_t z = 0; z < shape_.groups[2]; z++)
    for (uint64_t y = 0; y < shape_.groups[1]; y++)
      for (uint64_t x = 0; x < shape_.groups[0]; x++, number++) {
        *module_.group_id[0] = x, *module_.group_id[1] = y, *module_.group_id[2] = z;
        run_group(records, number);
        if (records.lines.size() + records.ops.size() > BATCH_LINES) emit(records);
      }
  emit(records);
  printed.assign(print_buffer.data(), print_position);
}

void LaunchRunner::run_group(Records& records, uint32_t number) {
  for (size_t i = 0; i < items_.size(); i++) {
    items_[i].at_barrier = false;
    items_[i].fiber->start(body, &items_[i]);
  }
  for (size_t w = 0; w < warps_.size(); w++) {
    size_t first = w * WARP_LANES;
    warps_[w].start(kernel_, std::min<size_t>(WARP_LANES, items_.size() - first), logs_.data());
  }
  bool ended = false;
  for (bool begin = true; !ended; begin = false) {
    ended = true;
    for (size_t w = 0; w < warps_.size(); w++) {
      if (!begin && warps_[w].state() == CapturedWarp::ENDED) continue;
      warp_first_ = w * WARP_LANES;
      size_t end = std::min(items_.size(), warp_first_ + WARP_LANES);
      for (size_t i = warp_first_; i < end; i++) {
        items_[i].at_barrier = false;
        if (!items_[i].fiber->ended()) resume(i);
      }
      ended &= warps_[w].run(*this, addresses_) == CapturedWarp::ENDED;
    }
  }
  uint32_t first_warp = records.warps.size();
  for (size_t w = 0; w < warps_.size(); w++) {
    warps_[w].append_to(records, w);
    lane_accesses += warps_[w].lane_accesses();
    outside += warps_[w].outside();
  }
  records.blocks.push_back({number, first_warp, uint32_t(warps_.size())});
}

void LaunchRunner::more(int lane) { resume(warp_first_ + lane); }

void LaunchRunner::to_barrier_or_end(int lane) {
  Item& item = items_[warp_first_ + lane];
  while (!item.fiber->ended() && !item.at_barrier) resume(warp_first_ + lane);
}

// Continues a work-item; a completely processed log is cleared.
void LaunchRunner::resume(size_t i) {
  LaneLog& log = logs_[i % WARP_LANES];
  if (log.next_block == log.n_blocks && log.next_access == log.n_accesses)
    log.n_blocks = log.n_accesses = log.next_block = log.next_access = 0;
  if (log.blocks.empty()) log.blocks.resize(FIRST_LOG), log.accesses.resize(FIRST_LOG);
  if (log.n_blocks == log.blocks.size()) log.blocks.resize(2 * log.n_blocks);
  if (log.n_accesses == log.accesses.size()) log.accesses.resize(2 * log.n_accesses);
  Item& item = items_[i];
  current_ = i;
  for (int d = 0; d < 3; d++) *module_.local_id[d] = item.id[d];
  *module_.log = {log.blocks.data() + log.n_blocks, log.blocks.data() + log.blocks.size(),
                  log.accesses.data() + log.n_accesses, log.accesses.data() + log.accesses.size()};
  item.fiber->resume();
  log.n_blocks = module_.log->block - log.blocks.data();
  log.n_accesses = module_.log->access - log.accesses.data();
}

void LaunchRunner::body(void* item) {
  LaunchRunner* launch = ((Item*)item)->launch;
  launch->entry_(launch->arguments_);
}

void LaunchRunner::log_full() {
  LaunchRunner& self = *running;
  LaneLog& log = self.logs_[self.current_ % WARP_LANES];
  Log& open = *self.module_.log;
  size_t n_blocks = open.block - log.blocks.data(), n_accesses = open.access - log.accesses.data();
  bool blocks_full = n_blocks == log.blocks.size(), accesses_full = n_accesses == log.accesses.size();
  if ((!blocks_full || n_blocks < longest_log()) && (!accesses_full || n_accesses < longest_log())) {
    if (blocks_full) log.blocks.resize(2 * n_blocks);
    if (accesses_full) log.accesses.resize(2 * n_accesses);
    open = {log.blocks.data() + n_blocks, log.blocks.data() + log.blocks.size(),
            log.accesses.data() + n_accesses, log.accesses.data() + log.accesses.size()};
    return;
  }
  self.items_[self.current_].fiber->suspend();
}

void LaunchRunner::wait() {
  Item& item = running->items_[running->current_];
  item.at_barrier = true;
  item.fiber->suspend();
}

}  // namespace capture
