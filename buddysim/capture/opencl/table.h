// Descriptions of kernels in 32-bit words, from the compiler pass to the runtime; ref_warp.py writes them for tests.
//
// module:  n_kernels, kernel...
// kernel:  text name, text refused, private_bytes, shared_bytes, code_bytes, n_args, {kind, bytes}..., text arg_name...,
//          n_sites, site..., n_blocks, block...
// site:    kind, bytes, flags, stretch, use_distance, use_cycles, use_hops
// block:   logged, join, stretch, n_targets, target..., n_sites, site number..., n_uses,
//          {site, distance, cycles, steps}...
// stretch: gap, cycles, steps, busy of each unit
// text:    bytes, then the bytes in as many words as they need
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trace_records.h"
#include "units.h"

namespace capture {

enum ArgumentKind : uint32_t { VALUE = 0, BUFFER = 1, LOCAL = 2, OTHER = 3, IMAGE = 4, SAMPLER = 5 };
enum : uint32_t { NOWHERE = 0xFFFFFFFFu, USED_ELSEWHERE = 0xFFFFFFFFu };

// For how many cycles of a scheduler instructions keep its execution units; for none where units are not told.
using Busy = std::array<uint32_t, N_UNITS>;

inline void add(Busy& sum, const Busy& more) {
  for (unsigned unit = 0; unit < N_UNITS; unit++) sum[unit] += more[unit];
}

// Instructions between two operations: how many, the longest chain of dependent ones (execution cycles, waits), and units.
struct Stretch {
  uint32_t gap = 0, cycles = 0, steps = 0;
  Busy busy{};
};

// An instruction that accesses memory, or a barrier.
struct Site {
  uint32_t kind = OP_LOAD, bytes = 0, flags = 0;  // OpKind, OpFlag
  Stretch before;             // since the site before it in its block, or the block's start
  uint32_t use_distance = 0;  // instructions to the first use in its block, 0: none at all, USED_ELSEWHERE: see Block
  uint32_t use_cycles = 0, use_hops = 0;
};

// A first use of a loaded value in another block than the load, or in a later iteration.
struct Use {
  uint32_t site = 0, distance = 0, cycles = 0, steps = 0;  // from the block's start
};

struct Block {
  uint32_t logged = 0;        // whether lanes log their entering it: one of its predecessors had a choice
  uint32_t join = NOWHERE;    // where lanes that diverge at its end reconverge: its immediate post-dominator
  Stretch after;              // from the last site (or the start) to its end
  std::vector<uint32_t> targets, sites;
  std::vector<Use> uses;
};

struct Argument {
  uint32_t kind = VALUE, bytes = 0;
  std::string name;
};

struct Kernel {
  std::string name, refused;  // refused: why it can't be traced
  uint32_t private_bytes = 0, shared_bytes = 0;
  uint32_t code_bytes = 0;  // 0: not known
  std::vector<Argument> arguments;
  std::vector<Site> sites;
  std::vector<Block> blocks;  // the first one is the entry
};

class Words {
 public:
  std::vector<uint32_t> words;
  void number(uint32_t value) { words.push_back(value); }
  void text(const std::string& value) {
    number(value.size());
    for (size_t i = 0; i < value.size(); i += 4) {
      uint32_t word = 0;
      for (size_t k = i; k < value.size() && k < i + 4; k++) word |= uint32_t(uint8_t(value[k])) << 8 * (k - i);
      number(word);
    }
  }
  void stretch(const Stretch& s) {
    number(s.gap), number(s.cycles), number(s.steps);
    for (auto cycles : s.busy) number(cycles);
  }
  void kernel(const Kernel& k) {
    text(k.name), text(k.refused), number(k.private_bytes), number(k.shared_bytes), number(k.code_bytes);
    number(k.arguments.size());
    for (auto& a : k.arguments) number(a.kind), number(a.bytes);
    for (auto& a : k.arguments) text(a.name);
    number(k.sites.size());
    for (auto& s : k.sites) {
      number(s.kind), number(s.bytes), number(s.flags), stretch(s.before);
      number(s.use_distance), number(s.use_cycles), number(s.use_hops);
    }
    number(k.blocks.size());
    for (auto& b : k.blocks) {
      number(b.logged), number(b.join), stretch(b.after);
      number(b.targets.size());
      for (auto t : b.targets) number(t);
      number(b.sites.size());
      for (auto s : b.sites) number(s);
      number(b.uses.size());
      for (auto& u : b.uses) number(u.site), number(u.distance), number(u.cycles), number(u.steps);
    }
  }
};

class WordReader {
 public:
  explicit WordReader(const uint32_t* words) : at_(words) {}
  uint32_t number() { return *at_++; }
  std::string text() {
    uint32_t n = number();
    std::string value((const char*)at_, n);  // little-endian, as everything here
    at_ += (n + 3) / 4;
    return value;
  }
  Stretch stretch() {
    Stretch s;
    s.gap = number(), s.cycles = number(), s.steps = number();
    for (auto& cycles : s.busy) cycles = number();
    return s;
  }
  Kernel kernel() {
    Kernel k;
    k.name = text(), k.refused = text(), k.private_bytes = number(), k.shared_bytes = number();
    k.code_bytes = number();
    k.arguments.resize(number());
    for (auto& a : k.arguments) a.kind = number(), a.bytes = number();
    for (auto& a : k.arguments) a.name = text();
    k.sites.resize(number());
    for (auto& s : k.sites) {
      s.kind = number(), s.bytes = number(), s.flags = number(), s.before = stretch();
      s.use_distance = number(), s.use_cycles = number(), s.use_hops = number();
    }
    k.blocks.resize(number());
    for (auto& b : k.blocks) {
      b.logged = number(), b.join = number(), b.after = stretch();
      b.targets.resize(number());
      for (auto& t : b.targets) t = number();
      b.sites.resize(number());
      for (auto& s : b.sites) s = number();
      b.uses.resize(number());
      for (auto& u : b.uses) u.site = number(), u.distance = number(), u.cycles = number(), u.steps = number();
    }
    return k;
  }

 private:
  const uint32_t* at_;
};

}  // namespace capture
