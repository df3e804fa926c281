//===- WarpState.cpp ------------------------------------------------------------------------------------===//

#include "WarpState.h"

#include "mlir/IR/Dominance.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace sass;

namespace {

/// Blocks where lanes of a warp may be apart.
///
/// They part at a branch that hangs on a register or a predicate of the lane, and at a WARPSYNC whose mask does. They are together again behind
/// a BSYNC that every path passes, if its barrier was set up before they parted: nothing else makes lanes wait for each other. Lanes that have
/// left with EXIT are not waited for.
class Divergence {
public:
  explicit Divergence(Region &code) : region(code) {
    for (Block &block : region)
      findJoin(block);
    enter();
    for (Block &block : region) {
      const bool gathers = maySplit(block);
      if (gathers)
        divergent.insert(&block);
      if (gathers || mayPart(block.getTerminator()))
        spread(block);
    }
  }

  bool contains(Block *block) const { return divergent.contains(block); }

private:
  /// A BSYNC, and the block whose BSSY its barrier is from.
  struct Join {
    Block *setUp;
    bool first; // nothing in the block comes before it
  };

  void findJoin(Block &block) {
    bool first = true;
    for (auto inst : block.getOps<SassInst>()) {
      if (inst.getMnemonic() == "BSYNC")
        for (Value read : inst.getReads())
          if (auto from = dyn_cast_or_null<SassInst>(read.getDefiningOp()); from && from.getMnemonic() == "BSSY")
            joins.try_emplace(&block, Join{from->getBlock(), first});
      first = false;
    }
  }

  /// The first block that the prologue enters is where all lanes of a warp start. Of the others nobody knows who comes there.
  void enter() {
    for (auto [index, block] : llvm::enumerate(region.front().getSuccessors()))
      if (index > 0 && isa<EntryOp>(region.front().getTerminator()))
        mark(block, [](Block *) { return false; });
  }

  static bool mayPart(Operation *terminator) {
    auto inst = dyn_cast<SassInst>(terminator);
    if (!inst || terminator->getNumSuccessors() < 2 || !inst.getLayout() || inst.getLayout()->terminator == SASS_TERM_EXIT)
      return false;
    return hangsOnLane(inst);
  }

  /// Lanes with other masks than the first ones go on by themselves.
  static bool maySplit(Block &block) {
    return llvm::any_of(block.getOps<SassInst>(),
                        [](SassInst inst) { return inst.getMnemonic() == "WARPSYNC" && inst.getLayout() && hangsOnLane(inst); });
  }

  static bool hangsOnLane(SassInst inst) {
    return !llvm::all_of(inst->getOperands().take_front(inst.getLayout()->reads),
                         [&](Value read) { return isShared(read, inst->getBlock(), 8); });
  }

  /// Whether lanes that go through a block together have the same in a value: a register of the warp, or what the block itself computes of
  /// such. (A value from elsewhere may be from different rounds of a loop.)
  static bool isShared(Value value, Block *block, unsigned depth) {
    Operation *op = value.getDefiningOp();
    if (isa<URegType, UPredType>(value.getType()) || isa_and_nonnull<PTOp, RZOp>(op))
      return true;
    auto inst = dyn_cast_or_null<SassInst>(op);
    return inst && depth && op->getBlock() == block && inst.getEffects() == 0 &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isShared(operand, block, depth - 1); });
  }

  void spread(Block &branch) {
    for (Block *successor : branch.getSuccessors())
      mark(successor, [&](Block *at) {
        auto join = joins.find(at);
        return join != joins.end() && postDominance.postDominates(at, &branch) && dominance.dominates(join->second.setUp, &branch);
      });
  }

  /// Marks what can be reached from a block up to where lanes join.
  void mark(Block *from, function_ref<bool(Block *)> isJoin) {
    SmallVector<Block *> stack{from};
    llvm::DenseSet<Block *> seen;
    bool joined = false;
    while (!stack.empty()) {
      Block *at = stack.pop_back_val();
      if (unjoined.contains(at) || !seen.insert(at).second)
        continue;
      if (isJoin(at)) {
        joined = true;
        if (!joins.find(at)->second.first)
          divergent.insert(at);
        continue;
      }
      divergent.insert(at);
      llvm::append_range(stack, at->getSuccessors());
    }
    if (!joined)
      unjoined.insert(seen.begin(), seen.end());
  }

  Region &region;
  DominanceInfo dominance;
  PostDominanceInfo postDominance;
  llvm::DenseMap<Block *, Join> joins;
  llvm::DenseSet<Block *> divergent;
  llvm::DenseSet<Block *> unjoined; // everything behind them is divergent, and known to be
};

} // namespace

void sass::markConverged(Region &code) {
  SmallVector<SassInst> writes;
  for (Block &block : code)
    for (auto inst : block.getOps<SassInst>()) {
      const SassLayout *layout = inst.getLayout();
      if (layout && layout->isCall)
        return; // a function may be called where lanes are apart, and they may come back apart
      if (layout && layout->isUniform)
        writes.push_back(inst);
    }
  if (writes.empty())
    return;
  Divergence divergence(code);
  for (SassInst inst : writes)
    inst.getInstData().converged = !divergence.contains(inst->getBlock());
}
