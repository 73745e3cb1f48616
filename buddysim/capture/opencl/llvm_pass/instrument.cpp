#include "instrument.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>

#include "../table.h"
#include "gpu_compiler.h"
#include "lower.h"
#include "times.h"

using namespace llvm;

namespace capture {
namespace {

constexpr unsigned MAX_PREDICATED = 7;  // instructions; assumed
constexpr unsigned INSTRUCTION_BYTES = 16;  // Volta and later

bool is_barrier(const Instruction& i) {
  auto* call = dyn_cast<CallInst>(&i);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == "bs_barrier";
}

const Value* accessed_pointer(const Instruction& i) {
  if (auto* rmw = dyn_cast<AtomicRMWInst>(&i)) return rmw->getPointerOperand();
  if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&i)) return exchange->getPointerOperand();
  return getLoadStorePointerOperand(&i);
}

AccessSite site_of(const Instruction& i) {
  AccessSite site;
  const DataLayout& layout = i.getModule()->getDataLayout();
  if (is_barrier(i)) {
    site.kind = OP_BARRIER;
  } else if (auto* load = dyn_cast<LoadInst>(&i)) {
    site.kind = OP_LOAD;
    site.bytes = layout.getTypeStoreSize(load->getType());
    site.flags = load->isVolatile() || load->isAtomic() ? FLAG_BYPASS_L1 : 0;
  } else if (auto* store = dyn_cast<StoreInst>(&i)) {
    site.kind = OP_STORE;
    site.bytes = layout.getTypeStoreSize(store->getValueOperand()->getType());
  } else {
    site.kind = OP_ATOMIC;
    auto* exchange = dyn_cast<AtomicCmpXchgInst>(&i);
    site.bytes = layout.getTypeStoreSize(exchange ? exchange->getCompareOperand()->getType() : i.getType());
    site.flags = i.use_empty() ? FLAG_NO_RETURN : 0;
  }
  return site;
}

// Collects the first uses of a loaded value; moves and phis are not uses.
void collect_uses(const Instruction& value, bool through_phi, std::map<const Instruction*, bool>& users,
                  std::map<std::pair<const Instruction*, bool>, bool>& seen) {
  if (!seen.emplace(std::make_pair(&value, through_phi), true).second) return;
  for (const User* user : value.users()) {
    auto* i = dyn_cast<Instruction>(user);
    if (!i) continue;
    bool phi = through_phi || isa<PHINode>(i);
    if (cost_of(*i).instructions == 0 && !i->isTerminator() && !i->getType()->isVoidTy()) {
      collect_uses(*i, phi, users, seen);
    } else {
      auto [at, fresh] = users.emplace(i, phi);
      if (!fresh) at->second &= phi;  // also used directly
    }
  }
}

std::string refusal(const Function& kernel) {
  if (auto* types = kernel.getMetadata("kernel_arg_type"))
    for (const MDOperand& operand : types->operands()) {
      StringRef type = cast<MDString>(operand)->getString();
      if (type.startswith("pipe")) return ("it has a " + type).str();
    }
  for (const Instruction& i : instructions(kernel)) {
    auto* call = dyn_cast<CallInst>(&i);
    if (!call || is_barrier(i)) continue;
    const Function* callee = call->getCalledFunction();
    if (!callee) return call->isInlineAsm() ? "it has inline assembly" : "it calls through a pointer";
    if (callee->isDeclaration() && !callee->isIntrinsic())
      return ("it calls " + callee->getName() + ", which is not known").str();
    if (callee->isVarArg() && callee->getName() != "printf") return ("it calls " + callee->getName()).str();
  }
  for (const Instruction& i : instructions(kernel))
    if (is_traced_access(i) && site_of(i).bytes > 128) return "it accesses more than 128 bytes at once";
  return "";
}

void make_empty(Function& kernel) {
  kernel.dropAllReferences();
  IRBuilder<> builder(BasicBlock::Create(kernel.getContext(), "entry", &kernel));
  builder.CreateRetVoid();
}

std::vector<Argument> arguments_of(const Function& kernel) {
  const DataLayout& layout = kernel.getParent()->getDataLayout();
  MDNode* spaces = kernel.getMetadata("kernel_arg_addr_space");
  MDNode* names = kernel.getMetadata("kernel_arg_name");
  std::vector<Argument> result;
  for (const llvm::Argument& argument : kernel.args()) {
    capture::Argument a;
    unsigned number = argument.getArgNo();
    StringRef type = type_of(argument);
    unsigned space = mdconst::extract<ConstantInt>(spaces->getOperand(number))->getZExtValue();
    if (type.startswith("image"))
      a.kind = IMAGE;
    else if (type.startswith("sampler_t"))
      a.kind = SAMPLER;
    else if (type.startswith("pipe"))
      a.kind = OTHER;
    else if (argument.getType()->isPointerTy() && !argument.hasByValAttr())
      a.kind = space == 3 ? LOCAL : BUFFER;
    else
      a.bytes = layout.getTypeAllocSize(argument.hasByValAttr() ? argument.getParamByValType() : argument.getType());
    if (names) a.name = cast<MDString>(names->getOperand(number))->getString().str();
    result.push_back(a);
  }
  return result;
}

// Bytes of the __local variables that the kernel uses.
unsigned shared_bytes(const Function& kernel) {
  const DataLayout& layout = kernel.getParent()->getDataLayout();
  std::string prefix = (kernel.getName() + ".").str();
  unsigned bytes = 0;
  for (const GlobalVariable& variable : kernel.getParent()->globals())
    if (!variable.isConstant() && !variable.isDeclaration() && variable.getName().startswith(prefix))
      bytes += layout.getTypeAllocSize(variable.getValueType());
  return bytes;
}

class KernelMaker {
 public:
  explicit KernelMaker(Function& kernel) : kernel_(kernel) {
    for (BasicBlock& block : kernel_) {
      number_[&block] = blocks_.size();
      blocks_.push_back(&block);
      times_.emplace_back(block);
    }
  }

  Kernel make() {
    Kernel k;
    k.name = kernel_.getName().str();
    k.arguments = arguments_of(kernel_);
    k.shared_bytes = shared_bytes(kernel_);
    PostDominatorTree tree(kernel_);
    DominatorTree dominators(kernel_);
    LoopInfo loops(dominators);
    k.blocks.resize(blocks_.size());
    for (size_t n = 0; n < blocks_.size(); n++) {
      const BasicBlock& block = *blocks_[n];
      for (const BasicBlock* target : successors(&block)) k.blocks[n].targets.push_back(number_[target]);
      for (const BasicBlock* before : predecessors(&block)) k.blocks[n].logged |= !before->getSingleSuccessor();
      auto* node = tree.getNode(&block);
      auto* join = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
      if (join) k.blocks[n].join = number_[join];
      add_sites(k, n);
      if (emulates_gpu_compiler() && join && reconverges(block, *join, loops)) add_reconvergence(k.blocks[n].after);
    }
    if (emulates_gpu_compiler()) add_entry(k), k.code_bytes = code_bytes(k);
    for (const Instruction* access : sites_) add_uses(k, *access);
    const DataLayout& layout = kernel_.getParent()->getDataLayout();
    for (const Instruction& i : instructions(kernel_))
      if (auto* variable = dyn_cast<AllocaInst>(&i))
        if (auto size = variable->getAllocationSizeInBits(layout)) k.private_bytes += *size / 8;
    return k;
  }

  void add_calls(const Kernel& k) {
    Module& module = *kernel_.getParent();
    LLVMContext& context = module.getContext();
    Type* nothing = Type::getVoidTy(context);
    auto hidden = [](FunctionCallee callee) {  // linked to every program: called without the PLT
      cast<Function>(callee.getCallee())->setVisibility(GlobalValue::HiddenVisibility);
      return callee;
    };
    auto log_block = hidden(module.getOrInsertFunction("bs_block", nothing, Type::getInt32Ty(context)));
    auto log_access = hidden(module.getOrInsertFunction("bs_access", nothing, PointerType::get(context, 0)));
    for (Instruction* access : sites_)
      if (!is_barrier(*access)) {
        IRBuilder<> builder(access);
        builder.CreateCall(log_access, {const_cast<Value*>(accessed_pointer(*access))});
      }
    for (size_t n = 0; n < blocks_.size(); n++)
      if (k.blocks[n].logged) {
        IRBuilder<> builder(&*blocks_[n]->getFirstInsertionPt());
        builder.CreateCall(log_block, {builder.getInt32(n)});
      }
  }

 private:
  void add_sites(Kernel& k, size_t n) {
    BlockTimes& times = times_[n];
    IssuePoint last;
    for (Instruction& i : *blocks_[n]) {
      if (!is_barrier(i) && !is_traced_access(i)) continue;
      IssuePoint point = times.points[&i];
      AccessSite site = site_of(i);
      site.before = compute_gap(last, point);
      last = point;
      last.index++;
      site_number_[&i] = k.sites.size();
      k.blocks[n].sites.push_back(k.sites.size());
      k.sites.push_back(site);
      sites_.push_back(&i);
    }
    k.blocks[n].after = compute_gap(last, {times.instructions, times.end, times.busy});
  }

  // A kernel begins with a load of its stack pointer from constant memory.
  static void add_entry(Kernel& k) {
    CfgBlock& entry = k.blocks.front();
    ComputeGap& begin = entry.sites.empty() ? entry.after : k.sites[entry.sites.front()].before;
    begin.instructions++;
    begin.busy[INTEGER] += UNIT_CYCLES[INTEGER];
  }

  // Counts every instruction of every block once, including operations.
  static unsigned code_bytes(const Kernel& k) {
    uint64_t instructions = k.sites.size();
    for (auto& site : k.sites) instructions += site.before.instructions;
    for (auto& block : k.blocks) instructions += block.after.instructions;
    return std::min<uint64_t>(instructions, UINT32_MAX / INSTRUCTION_BYTES) * INSTRUCTION_BYTES;
  }

  // Volta sets the reconvergence point before a divergence (BMOV, BSSY); lanes wait at this point (BSYNC).
  static void add_reconvergence(ComputeGap& after) {
    after.instructions += 3;
    after.busy[BRANCH] += 3 * UNIT_CYCLES[BRANCH];
    after.cycles += 3 * LATENCY[BRANCH];
    after.hops += 3;
  }

  // Whether lanes that diverge at a block's end reconverge explicitly. They do not where they leave a loop or exit, nor
  // over a few instructions, which are predicated.
  bool reconverges(const BasicBlock& block, const BasicBlock& join, const LoopInfo& loops) const {
    if (succ_size(&block) < 2 || isa<ReturnInst>(join.front())) return false;
    if (auto* loop = loops.getLoopFor(&block); loop && !loop->contains(&join)) return false;
    unsigned longest = 0;
    for (const BasicBlock* target : successors(&block)) {
      if (target == &join) continue;
      if (target->getSingleSuccessor() != &join) return true;
      longest = std::max(longest, times_[number_.at(target)].instructions);
    }
    return longest > MAX_PREDICATED;
  }

  static ComputeGap compute_gap(const IssuePoint& from, const IssuePoint& to) {
    ComputeGap s;
    s.instructions = to.index - from.index;
    if (s.instructions) {  // the two times may be on different dependence chains
      s.cycles = to.issue.cycles > from.issue.cycles ? to.issue.cycles - from.issue.cycles : 0;
      s.hops = to.issue.hops > from.issue.hops ? to.issue.hops - from.issue.hops : 0;
    }
    for (unsigned unit = 0; emulates_gpu_compiler() && unit < N_UNITS; unit++) s.busy[unit] = to.busy[unit] - from.busy[unit];
    return s;
  }

  void add_uses(Kernel& k, const Instruction& access) {
    AccessSite& site = k.sites[site_number_[&access]];
    if (site.kind != OP_LOAD && site.kind != OP_ATOMIC) return;
    std::map<const Instruction*, bool> users;
    std::map<std::pair<const Instruction*, bool>, bool> seen;
    collect_uses(access, false, users, seen);
    if (users.empty()) return;
    const BasicBlock* home = access.getParent();
    IssuePoint from = times_[number_[home]].points[&access];
    const Instruction* first = nullptr;
    std::map<unsigned, IssuePoint> elsewhere;  // by block: the first use in it
    for (auto [user, through_phi] : users) {
      IssuePoint point = times_[number_[user->getParent()]].points[user];
      if (user->getParent() == home && !through_phi) {
        if (!first || point.index < times_[number_[home]].points[first].index) first = user;
        continue;
      }
      auto [at, fresh] = elsewhere.emplace(number_[user->getParent()], point);
      if (!fresh && point.index < at->second.index) at->second = point;
    }
    if (first) {
      IssuePoint to = times_[number_[home]].points[first];
      ComputeGap between = compute_gap(from, to);
      site.use_distance = between.instructions, site.use_cycles = between.cycles, site.use_hops = between.hops;
      return;
    }
    site.use_distance = USED_ELSEWHERE;
    for (auto& [block, point] : elsewhere)
      k.blocks[block].uses.push_back({site_number_[&access], point.index, point.issue.cycles, point.issue.hops});
  }

  Function& kernel_;
  std::vector<BasicBlock*> blocks_;
  std::vector<BlockTimes> times_;
  std::vector<Instruction*> sites_;
  std::map<const BasicBlock*, unsigned> number_;
  std::map<const Instruction*, unsigned> site_number_;
};

void remove_unused(Module& module) {
  for (bool removed = true; removed;) {
    removed = false;
    for (Function& f : make_early_inc_range(module))
      if (f.hasLocalLinkage() && f.use_empty()) {
        f.eraseFromParent();
        removed = true;
      }
  }
}

}  // namespace

void instrument(Module& module) {
  Words table;
  std::vector<Kernel> kernels;
  for (Function& f : module) {
    if (f.isDeclaration() || !f.getMetadata("kernel_arg_addr_space")) continue;
    lower_memory_intrinsics(f);
    std::string why = refusal(f);
    if (!why.empty()) {
      Kernel k;
      k.name = f.getName().str();
      k.refused = why;
      k.arguments = arguments_of(f);
      kernels.push_back(k);
      make_empty(f);
      continue;
    }
    KernelMaker maker(f);
    kernels.push_back(maker.make());
    maker.add_calls(kernels.back());
  }
  remove_unused(module);
  table.number(kernels.size());
  for (auto& kernel : kernels) table.kernel(kernel);
  Constant* words = ConstantDataArray::get(module.getContext(), table.words);
  new GlobalVariable(module, words->getType(), true, GlobalValue::ExternalLinkage, words, "bs_table");
}

}  // namespace capture
