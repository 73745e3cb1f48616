#include "warp.h"

#include <algorithm>

namespace capture {
namespace {

constexpr uint32_t ALL_LANES = 0xFFFFFFFFu;

int pop_lane(uint32_t& mask) {
  int lane = __builtin_ctz(mask);
  mask &= mask - 1;
  return lane;
}

}  // namespace

void CapturedWarp::start(const Kernel& kernel, int n_lanes, LaneLog* logs) {
  kernel_ = &kernel;
  logs_ = logs;
  live_ = n_lanes == WARP_LANES ? ALL_LANES : (1u << n_lanes) - 1;
  waiting_ = 0;
  stack_.assign(1, {live_, 0, NOWHERE, 0});
  waiting_paths_.clear();
  ops_.clear();
  lines_.clear();
  loaded_.assign(kernel.sites.size(), {});
  since_ = {};
  instructions_ = cycles_ = hops_ = lane_accesses_ = outside_ = 0;
}

CapturedWarp::State CapturedWarp::run(LaneSource& source, AddressMap& map) {
  while (live_) {
    if (stack_.empty()) {  // every lane waits at a barrier
      const Path& path = waiting_paths_.front();
      barrier(kernel_->sites[kernel_->blocks[path.block].sites[path.site - 1]]);
      stack_.swap(waiting_paths_);
      waiting_ = 0;
      return state_ = AT_BARRIER;
    }
    Path path = stack_.back();
    path.mask &= live_ & ~waiting_;
    if (!path.mask || path.block == path.join) {
      stack_.pop_back();
      continue;
    }
    if (run_to_barrier(path, source, map)) return state_ = AT_BARRIER;
  }
  return state_ = ENDED;
}

// Runs a path's block and its branch. Returns whether the whole warp has reached a barrier.
bool CapturedWarp::run_to_barrier(Path path, LaneSource& source, AddressMap& map) {
  const CfgBlock& block = kernel_->blocks[path.block];
  if (path.site == 0) enter(block);
  while (path.site < block.sites.size()) {
    uint32_t number = block.sites[path.site++];
    const AccessSite& site = kernel_->sites[number];
    pass(site.before);
    if (site.kind != OP_BARRIER) {
      access(site, number, path.mask, source, map);
      continue;
    }
    for (uint32_t lanes = path.mask; lanes;) source.to_barrier_or_end(pop_lane(lanes));
    if (path.mask == live_) {
      barrier(site);
      stack_.back().site = path.site;
      return true;
    }
    // Other lanes have not reached it: these lanes wait, and continue separately afterwards.
    stack_.pop_back();
    waiting_ |= path.mask;
    waiting_paths_.push_back({path.mask, path.block, NOWHERE, path.site});
    return false;
  }
  pass(block.after);
  leave(path, source);
  return false;
}

// Moves the lanes on to the blocks that their logs name.
void CapturedWarp::leave(Path path, LaneSource& source) {
  const CfgBlock& block = kernel_->blocks[path.block];
  stack_.pop_back();
  if (block.targets.empty()) {
    for (uint32_t lanes = path.mask; lanes;) source.to_barrier_or_end(pop_lane(lanes));
    live_ &= ~path.mask;
    return;
  }
  if (block.targets.size() == 1) {
    uint32_t target = block.targets[0];
    if (kernel_->blocks[target].logged)
      for (uint32_t lanes = path.mask; lanes;)
        if (next_block(pop_lane(lanes), source) != target) throw std::logic_error("a lane left its path");
    stack_.push_back({path.mask, target, path.join, 0});
    return;
  }
  uint32_t next_blocks[WARP_LANES];
  uint32_t first = NOWHERE;
  bool uniform = true;
  for (uint32_t lanes = path.mask; lanes;) {
    int lane = pop_lane(lanes);
    next_blocks[lane] = next_block(lane, source);
    if (first == NOWHERE) first = next_blocks[lane];
    uniform &= next_blocks[lane] == first;
  }
  if (uniform) {
    stack_.push_back({path.mask, first, path.join, 0});
    return;
  }
  uint32_t join = block.join == NOWHERE ? path.join : block.join;
  if (join != path.join) stack_.push_back({path.mask, join, path.join, 0});  // after the join they execute together
  for (size_t t = block.targets.size(); t-- > 0;) {  // the first target's lanes go first
    uint32_t target = block.targets[t], mask = 0;
    bool seen = std::find(block.targets.begin(), block.targets.begin() + t, target) != block.targets.begin() + t;
    if (target == join || seen) continue;
    for (uint32_t lanes = path.mask; lanes;) {
      int lane = pop_lane(lanes);
      if (next_blocks[lane] == target) mask |= 1u << lane;
    }
    if (mask) stack_.push_back({mask, target, join, 0});
  }
}

void CapturedWarp::access(const AccessSite& site, uint32_t number, uint32_t mask, LaneSource& source, AddressMap& map) {
  uint64_t addresses[WARP_LANES];
  int n = 0;
  while (mask) {
    uint64_t address = map.traced(next_access(pop_lane(mask), source), site.bytes);
    if (address)
      addresses[n++] = address;
    else
      outside_++;
  }
  lane_accesses_ += n;
  if (!n) {  // private or local memory at run time: an instruction, but no operation
    pass({1, 0, 0});
    return;
  }
  uint32_t at = ops_.size();
  WarpOp& op = add_op(site);
  op.bytes_per_lane = site.bytes;
  uint64_t lines[MAX_OP_LINES];
  op.n_lines = coalesce(addresses, n, site.bytes, site.kind == OP_STORE, lines);
  lines_.insert(lines_.end(), lines, lines + op.n_lines);
  op.flags |= site.kind == OP_ATOMIC ? atomic_conflicts(addresses, n, site.bytes) << ATOMIC_CONFLICTS_SHIFT
                                     : bank_words(addresses, n, site.bytes, lines, op.n_lines) << BANK_WORDS_SHIFT;
  if (site.use_distance == USED_ELSEWHERE)
    loaded_[number] = {at, instructions_, cycles_, hops_};
  else
    op.use_distance = site.use_distance, op.use_cycles = site.use_cycles, op.use_hops = site.use_hops;
  instructions_++;
}

void CapturedWarp::barrier(const AccessSite& site) {
  add_op(site);
  instructions_++;
}

WarpOp& CapturedWarp::add_op(const AccessSite& site) {
  WarpOp op{};
  op.first_line = lines_.size();
  op.gap_instructions = since_.instructions, op.critical_path_cycles = since_.cycles, op.critical_path_hops = since_.hops;
  op.unit_busy_slots = std::min<uint32_t>(unit_busy_slots(uint64_t(since_.instructions) + 1), 0xFFFF);
  op.kind = site.kind;
  op.flags = site.flags | FLAG_TIMED;
  since_ = {};
  ops_.push_back(op);
  return ops_.back();
}

// Cycles of the busiest unit in excess of one per instruction since the last operation.
uint32_t CapturedWarp::unit_busy_slots(uint64_t instructions) const {
  uint32_t busiest = *std::max_element(since_.busy.begin(), since_.busy.end());
  return busiest - std::min<uint64_t>(busiest, instructions);
}

void CapturedWarp::pass(const ComputeGap& gap) {
  since_.instructions += gap.instructions, since_.cycles += gap.cycles, since_.hops += gap.hops;
  add(since_.busy, gap.busy);
  instructions_ += gap.instructions, cycles_ += gap.cycles, hops_ += gap.hops;
}

// Lanes enter a block: the distances of first uses in it are now known.
void CapturedWarp::enter(const CfgBlock& block) {
  for (const FirstUse& use : block.uses) {
    Loaded& loaded = loaded_[use.site];
    if (loaded.op == NOWHERE) continue;
    WarpOp& op = ops_[loaded.op];
    op.use_distance = instructions_ + use.distance - loaded.instructions;
    op.use_cycles = cycles_ + use.cycles - loaded.cycles;
    op.use_hops = std::min<uint64_t>(hops_ + use.hops - loaded.hops, 0xFFFF);
    loaded.op = NOWHERE;
  }
}

uint32_t CapturedWarp::next_block(int lane, LaneSource& source) {
  LaneLog& log = logs_[lane];
  if (log.next_block == log.n_blocks) source.more(lane);
  if (log.next_block == log.n_blocks) throw std::logic_error("a lane's log ends before its path");
  return log.blocks[log.next_block++];
}

uint64_t CapturedWarp::next_access(int lane, LaneSource& source) {
  LaneLog& log = logs_[lane];
  if (log.next_access == log.n_accesses) source.more(lane);
  if (log.next_access == log.n_accesses) throw std::logic_error("a lane's log ends before its accesses");
  return log.accesses[log.next_access++];
}

void CapturedWarp::append_to(Records& records, uint32_t number) const {
  uint32_t first_op = records.ops.size(), first_line = records.lines.size();
  uint32_t n = ops_.size();
  records.warps.push_back({number, first_op, n, since_.instructions, since_.cycles, since_.hops,
                           unit_busy_slots(since_.instructions)});
  for (WarpOp op : ops_) {
    op.first_line += first_line;
    records.ops.push_back(op);
  }
  records.lines.insert(records.lines.end(), lines_.begin(), lines_.end());
}

}  // namespace capture
