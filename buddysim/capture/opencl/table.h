// Descriptions of kernels as 32-bit words: the compiler pass writes them, the runtime reads them. Tests write them with
// ref_warp.py.
//
// module:  n_kernels, kernel...
// kernel:  text name, text refused, private_bytes, shared_bytes, code_bytes, n_args, {kind, bytes}..., text arg_name...,
//          n_sites, site..., n_blocks, block...
// site:    kind, bytes, flags, compute_gap, use_distance, use_cycles, use_hops
// block:   logged, join, compute_gap, n_targets, target..., n_sites, site number..., n_uses,
//          {site, distance, cycles, hops}...
// compute_gap: instructions, cycles, hops, busy cycles of each unit
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

// Cycles for which instructions keep each execution unit of a scheduler busy; all 0 without --emulate-gpu-compiler.
using Busy = std::array<uint32_t, N_UNITS>;

inline void add(Busy& sum, const Busy& more) {
  for (unsigned unit = 0; unit < N_UNITS; unit++) sum[unit] += more[unit];
}

// The instructions between two operations: their number, their critical path (cycles, hops), and the busy units.
struct ComputeGap {
  uint32_t instructions = 0, cycles = 0, hops = 0;
  Busy busy{};
};

// An instruction that accesses memory, or a barrier.
struct AccessSite {
  uint32_t kind = OP_LOAD, bytes = 0, flags = 0;  // OpKind, OpFlag
  ComputeGap before;             // since the site before it in its block, or the block's start
  uint32_t use_distance = 0;  // instructions to the first use in its block, 0: none at all, USED_ELSEWHERE: see CfgBlock
  uint32_t use_cycles = 0, use_hops = 0;
};

// A first use of a loaded value in another block than the load, or in a later iteration.
struct FirstUse {
  uint32_t site = 0, distance = 0, cycles = 0, hops = 0;  // from the block's start
};

struct CfgBlock {
  uint32_t logged = 0;        // whether lanes log that they enter it: a predecessor has several targets
  uint32_t join = NOWHERE;    // where lanes that diverge at its end reconverge: its immediate post-dominator
  ComputeGap after;              // from the last site (or the start) to its end
  std::vector<uint32_t> targets, sites;
  std::vector<FirstUse> uses;
};

struct Argument {
  uint32_t kind = VALUE, bytes = 0;
  std::string name;
};

struct Kernel {
  std::string name, refused;  // refused: the reason why it is not traced; "": traced
  uint32_t private_bytes = 0, shared_bytes = 0;
  uint32_t code_bytes = 0;  // 0: not known
  std::vector<Argument> arguments;
  std::vector<AccessSite> sites;
  std::vector<CfgBlock> blocks;  // the first one is the entry
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
  void compute_gap(const ComputeGap& s) {
    number(s.instructions), number(s.cycles), number(s.hops);
    for (auto cycles : s.busy) number(cycles);
  }
  void kernel(const Kernel& k) {
    text(k.name), text(k.refused), number(k.private_bytes), number(k.shared_bytes), number(k.code_bytes);
    number(k.arguments.size());
    for (auto& a : k.arguments) number(a.kind), number(a.bytes);
    for (auto& a : k.arguments) text(a.name);
    number(k.sites.size());
    for (auto& s : k.sites) {
      number(s.kind), number(s.bytes), number(s.flags), compute_gap(s.before);
      number(s.use_distance), number(s.use_cycles), number(s.use_hops);
    }
    number(k.blocks.size());
    for (auto& b : k.blocks) {
      number(b.logged), number(b.join), compute_gap(b.after);
      number(b.targets.size());
      for (auto t : b.targets) number(t);
      number(b.sites.size());
      for (auto s : b.sites) number(s);
      number(b.uses.size());
      for (auto& u : b.uses) number(u.site), number(u.distance), number(u.cycles), number(u.hops);
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
  ComputeGap compute_gap() {
    ComputeGap s;
    s.instructions = number(), s.cycles = number(), s.hops = number();
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
      s.kind = number(), s.bytes = number(), s.flags = number(), s.before = compute_gap();
      s.use_distance = number(), s.use_cycles = number(), s.use_hops = number();
    }
    k.blocks.resize(number());
    for (auto& b : k.blocks) {
      b.logged = number(), b.join = number(), b.after = compute_gap();
      b.targets.resize(number());
      for (auto& t : b.targets) t = number();
      b.sites.resize(number());
      for (auto& s : b.sites) s = number();
      b.uses.resize(number());
      for (auto& u : b.uses) u.site = number(), u.distance = number(), u.cycles = number(), u.hops = number();
    }
    return k;
  }

 private:
  const uint32_t* at_;
};

}  // namespace capture
