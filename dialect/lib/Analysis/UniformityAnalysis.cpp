//===- UniformityAnalysis.cpp -------------------------------------------------------------------------------===//

#include "Sass/Analysis/UniformityAnalysis.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/IR/Dominance.h"
#include "llvm/ADT/SCCIterator.h"

using namespace mlir;
using namespace sass;

namespace {

/// Nothing known yet, uniform, or divergent.
struct Uniformity {
  enum Kind : uint8_t { Unknown, Uniform, Divergent } kind = Unknown;

  static Uniformity join(const Uniformity &a, const Uniformity &b) { return {std::max(a.kind, b.kind)}; }
  bool operator==(const Uniformity &o) const { return kind == o.kind; }
  void print(raw_ostream &os) const { os << (kind == Unknown ? "unknown" : kind == Uniform ? "uniform" : "divergent"); }
};

using UniformityLattice = dataflow::Lattice<Uniformity>;

/// Registers that a warp has once.
bool isWarpRegister(Value value) { return isa<URegType, UPredType>(value.getType()); }

/// Special registers that are the same for all threads of a block.
bool readsBlockUniformRegister(SassInst inst) {
  std::string text;
  getEngine()->skeleton(
      inst.getLayout(), inst.getWord(), SASS_LABEL_NONE,
      [](void *user, const char *data, size_t size) { static_cast<std::string *>(user)->append(data, size); }, &text);
  StringRef name = StringRef(text).rsplit(' ').second;
  return name.starts_with("SR_CTAID") || name.starts_with("SR_NCTAID") || name.starts_with("SR_NTID") || name == "SRZ";
}

/// What a vote says, all lanes that vote hear.
bool isVote(SassInst inst) { return inst.getMnemonic() == "VOTE"; }

/// Whether the results are the same in all lanes if all operands are (of a vote: the guard).
bool isLaneInvariant(SassInst inst) {
  unsigned effects = inst.getEffects();
  if (effects == 0)
    return true;
  StringRef mnemonic = inst.getMnemonic();
  if (isVote(inst))
    return true;
  if (mnemonic == "S2R" || mnemonic == "CS2R")
    return readsBlockUniformRegister(inst);
  const SassLayout *layout = inst.getLayout();
  return effects == SASS_EFFECT_READ && layout && layout->space == SASS_SPACE_CONSTANT;
}

class DataUniformity : public dataflow::SparseForwardDataFlowAnalysis<UniformityLattice> {
public:
  DataUniformity(DataFlowSolver &solver, const llvm::DenseSet<Value> &forced)
      : SparseForwardDataFlowAnalysis(solver), forced(forced) {}

  LogicalResult visitOperation(Operation *op, ArrayRef<const UniformityLattice *> operands,
                               ArrayRef<UniformityLattice *> results) override {
    Uniformity joined{Uniformity::Uniform};
    if (auto inst = dyn_cast<SassInst>(op)) {
      const SassLayout *layout = inst.getLayout();
      for (auto [index, operand] : llvm::enumerate(operands)) {
        if (isVote(inst) && index >= layout->hasGuard && index < layout->reads)
          continue;
        if (operand->getValue().kind == Uniformity::Unknown)
          return success(); // comes again
        joined = Uniformity::join(joined, operand->getValue());
      }
      if (!isLaneInvariant(inst))
        joined.kind = Uniformity::Divergent;
    } else if (!isa<PTOp, UPTOp, RZOp, URZOp>(op)) {
      joined.kind = Uniformity::Divergent; // a register at entry
    }
    for (UniformityLattice *result : results)
      set(result, joined);
    return success();
  }

  void setToEntryState(UniformityLattice *lattice) override { set(lattice, {Uniformity::Divergent}); }

private:
  void set(UniformityLattice *lattice, Uniformity state) {
    Value value = lattice->getAnchor();
    if (isWarpRegister(value))
      state.kind = Uniformity::Uniform;
    else if (forced.contains(value))
      state.kind = Uniformity::Divergent;
    propagateIfChanged(lattice, lattice->join(state));
  }

  const llvm::DenseSet<Value> &forced;
};

/// What decides where control goes: the guard and every predicate or register that a terminator reads itself.
bool isDivergent(Operation *terminator, function_ref<bool(Value)> isUniform) {
  auto inst = dyn_cast<SassInst>(terminator);
  if (!inst || terminator->getNumSuccessors() == 0)
    return false;
  if (terminator->getNumSuccessors() == 1 && !inst.isGuarded())
    return false;
  unsigned own = getOperandPins(inst.getInstData()).size();
  return !llvm::all_of(terminator->getOperands().take_front(own), isUniform);
}

} // namespace

UniformityAnalysis::UniformityAnalysis(FuncOp func) {
  llvm::DenseSet<Value> forced;
  PostDominanceInfo postDominance(func);
  // Cycles of the flow graph, by block.
  llvm::DenseMap<Block *, unsigned> cycle;
  unsigned cycles = 0;
  for (auto it = llvm::scc_begin(&func.getBody()); !it.isAtEnd(); ++it, ++cycles)
    for (Block *block : *it)
      cycle[block] = it.hasCycle() ? cycles + 1 : 0;

  for (bool changed = true; changed;) {
    changed = false;
    DataFlowSolver solver;
    solver.load<dataflow::DeadCodeAnalysis>();
    solver.load<dataflow::SparseConstantPropagation>();
    solver.load<DataUniformity>(forced);
    uniform.clear();
    if (failed(solver.initializeAndRun(func)))
      return; // nothing is known to be uniform
    auto note = [&](Value value) {
      const auto *lattice = solver.lookupState<UniformityLattice>(value);
      if (isWarpRegister(value) || (lattice && lattice->getValue().kind == Uniformity::Uniform && !forced.contains(value)))
        uniform.insert(value);
    };
    for (Block &block : func.getBody()) {
      for (BlockArgument arg : block.getArguments())
        note(arg);
      for (Operation &op : block)
        for (Value result : op.getResults())
          note(result);
    }
    auto force = [&](Value value) {
      if (!isWarpRegister(value))
        changed |= forced.insert(value).second;
    };
    for (Block &block : func.getBody()) {
      if (divergentBranches.contains(&block) ||
          !isDivergent(block.getTerminator(), [&](Value v) { return uniform.contains(v); }))
        continue;
      divergentBranches.insert(&block);
      // Blocks that the paths pass before they all meet again, and the block where they do.
      Block *meet = nullptr;
      if (auto *node = postDominance.getNode(&block); node && node->getIDom())
        meet = node->getIDom()->getBlock();
      SmallVector<Block *> stack(block.getSuccessors());
      llvm::DenseSet<Block *> seen;
      while (!stack.empty()) {
        Block *at = stack.pop_back_val();
        if (!seen.insert(at).second)
          continue;
        for (BlockArgument arg : at->getArguments())
          force(arg);
        if (at != meet)
          llvm::append_range(stack, at->getSuccessors());
      }
      // Lanes leave the loop in different rounds and take different values with them.
      if (unsigned own = cycle[&block]; own && llvm::any_of(block.getSuccessors(), [&](Block *s) { return cycle[s] != own; }))
        for (auto [member, id] : cycle) {
          if (id != own)
            continue;
          for (BlockArgument arg : member->getArguments())
            force(arg);
          for (Operation &op : *member)
            for (Value result : op.getResults())
              if (llvm::any_of(result.getUsers(), [&](Operation *user) { return cycle[user->getBlock()] != own; }))
                force(result);
        }
    }
  }
}
