// A plugin of Oclgrind that writes down each kernel's control flow and, per work-item, the blocks that it entered and the
// global memory that it accessed. One line each, to the file named by OCLGRIND_WARP_LOG:
//
//   buffer ADDRESS BYTES
//   kernel NAME, 3 of the groups, 3 of the local size
//   block TARGETS... | KIND BYTES, ...           in the order of their numbers; kinds as in records.py
//   item GROUP LOCAL | BLOCKS... | ADDRESSES...  groups and items are linear, x fastest
#include <llvm/IR/CFG.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <oclgrind/Context.h>
#include <oclgrind/Kernel.h>
#include <oclgrind/KernelInvocation.h>
#include <oclgrind/Memory.h>
#include <oclgrind/Plugin.h>
#include <oclgrind/WorkGroup.h>
#include <oclgrind/WorkItem.h>
#include <oclgrind/common.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

using namespace oclgrind;

namespace {

struct Item {
  std::vector<unsigned> blocks;
  std::vector<size_t> accesses;
};

bool is_global(const llvm::Value* pointer) { return pointer->getType()->getPointerAddressSpace() == AddrSpaceGlobal; }

class Log : public Plugin {
 public:
  explicit Log(const Context* context) : Plugin(context), file_(fopen(getenv("OCLGRIND_WARP_LOG"), "w")) {}
  ~Log() override { fclose(file_); }
  bool isThreadSafe() const override { return false; }

  void memoryAllocated(const Memory* memory, size_t address, size_t size, cl_mem_flags, const uint8_t*) override {
    if (memory->getAddressSpace() == AddrSpaceGlobal) fprintf(file_, "buffer %zu %zu\n", address, size);
  }

  void kernelBegin(const KernelInvocation* invocation) override {
    const llvm::Function& f = *invocation->getKernel()->getFunction();
    groups_ = invocation->getNumGroups();
    Size3 local = invocation->getLocalSize();
    fprintf(file_, "kernel %s %zu %zu %zu %zu %zu %zu\n", f.getName().str().c_str(), groups_.x, groups_.y, groups_.z,
            local.x, local.y, local.z);
    number_.clear();
    for (const llvm::BasicBlock& block : f) number_.emplace(&block, number_.size());
    for (const llvm::BasicBlock& block : f) {
      fprintf(file_, "block");
      for (const llvm::BasicBlock* target : llvm::successors(&block)) fprintf(file_, " %u", number_[target]);
      fprintf(file_, " |");
      for (const llvm::Instruction& i : block) write_site(i);
      fprintf(file_, "\n");
    }
  }

  void workGroupBegin(const WorkGroup* group) override {
    Size3 size = group->getGroupSize();
    items_.assign(size.x * size.y * size.z, {});
  }

  void instructionExecuted(const WorkItem* item, const llvm::Instruction* i, const TypedValue&) override {
    if (i != &i->getParent()->front()) return;
    auto number = number_.find(i->getParent());
    if (number != number_.end()) of(item).blocks.push_back(number->second);
  }

  void memoryLoad(const Memory* m, const WorkItem* item, size_t address, size_t) override { access(m, item, address); }
  void memoryStore(const Memory* m, const WorkItem* item, size_t address, size_t, const uint8_t*) override {
    access(m, item, address);
  }
  void memoryAtomicLoad(const Memory* m, const WorkItem* item, AtomicOp, size_t address, size_t) override {
    access(m, item, address);
  }

  void workGroupComplete(const WorkGroup* group) override {
    Size3 id = group->getGroupID();
    for (size_t i = 0; i < items_.size(); i++) {
      fprintf(file_, "item %zu %zu |", id.x + groups_.x * (id.y + groups_.y * id.z), i);
      for (unsigned block : items_[i].blocks) fprintf(file_, " %u", block);
      fprintf(file_, " |");
      for (size_t address : items_[i].accesses) fprintf(file_, " %zu", address);
      fprintf(file_, "\n");
    }
  }

 private:
  Item& of(const WorkItem* item) {
    Size3 local = item->getLocalID(), size = item->getWorkGroup()->getGroupSize();
    return items_[local.x + size.x * (local.y + size.y * local.z)];
  }

  void access(const Memory* memory, const WorkItem* item, size_t address) {
    if (memory->getAddressSpace() == AddrSpaceGlobal) of(item).accesses.push_back(address);
  }

  void write_site(const llvm::Instruction& i) {
    const llvm::DataLayout& layout = i.getModule()->getDataLayout();
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
      if (is_global(load->getPointerOperand()))
        fprintf(file_, " 0 %zu", (size_t)layout.getTypeStoreSize(load->getType()));
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
      if (is_global(store->getPointerOperand()))
        fprintf(file_, " 1 %zu", (size_t)layout.getTypeStoreSize(store->getValueOperand()->getType()));
    } else if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) {
      if (!call->getCalledFunction()) return;
      llvm::StringRef name = call->getCalledFunction()->getName();
      if (name.contains("barrier"))
        fprintf(file_, " 3 0");
      else if (name.contains("atom") && call->arg_size() && is_global(call->getArgOperand(0)))
        fprintf(file_, " 2 4");
    }
  }

  FILE* file_;
  Size3 groups_;
  std::map<const llvm::BasicBlock*, unsigned> number_;
  std::vector<Item> items_;
};

Log* log_;

}  // namespace

extern "C" void initializePlugins(Context* context) {
  log_ = new Log(context);
  context->registerPlugin(log_);
}

extern "C" void releasePlugins(Context* context) {
  context->unregisterPlugin(log_);
  delete log_;
}
