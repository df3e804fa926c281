//===- TestInst.cpp - what authors of passes call, driven by attributes ------------------------------------===//
//
// sass-opt --load-pass-plugin=SassTestPasses.so --pass-pipeline='builtin.module(sass.func(test-sass-inst))', for FileCheck.
// On an instruction:
//   test.form = "FMUL_0x220_R_R_R"    becomes a new instruction of that form which reads the same;
//                                     test.fields = {"0.R0" = 5}, test.modifiers = ".FTZ" say what else it is
//   test.set = {"2.X0" = 5}           gets fields
//   test.shape = {"1" = "-R#"}        gets shapes of operands
//   test.guard = "P0"                 gets the register at entry as guard, "not P0" negated, "PT" none; what it writes keeps what it was at entry
//   test.say                          says what the queries answer, as a remark
//
//===--------------------------------------------------------------------------------------------------------===//

#include "Sass/Sass.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {
struct TestInst : PassWrapper<TestInst, OperationPass<sass::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestInst)
  StringRef getArgument() const final { return "test-sass-inst"; }
  StringRef getDescription() const final { return "change instructions as their attributes say"; }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](sass::SassInst inst) {
      if (failed(change(rewriter, inst)))
        signalPassFailure();
    });
  }

  LogicalResult change(IRRewriter &rewriter, sass::SassInst inst) {
    if (inst->hasAttr("test.say"))
      say(inst);
    if (auto form = inst->getAttrOfType<StringAttr>("test.form"))
      return rebuild(rewriter, inst, form);
    LogicalResult result = success();
    auto each = [&](StringRef name, auto apply) {
      auto entries = inst->getAttrOfType<DictionaryAttr>(name);
      for (NamedAttribute entry : entries ? entries.getValue() : ArrayRef<NamedAttribute>())
        if (succeeded(result))
          result = apply(entry.getName().strref(), entry.getValue());
    };
    each("test.set", [&](StringRef name, Attribute value) { return inst.setField(name, cast<IntegerAttr>(value).getInt()); });
    each("test.shape", [&](StringRef operand, Attribute shape) {
      return inst.setShape(operand[0] - '0', cast<StringAttr>(shape).getValue());
    });
    if (auto guard = inst->getAttrOfType<StringAttr>("test.guard"))
      return setGuard(rewriter, inst, guard);
    return result;
  }

  LogicalResult rebuild(IRRewriter &rewriter, sass::SassInst inst, StringRef form) {
    SmallVector<Value> operands{inst.getGuard()};
    llvm::append_range(operands, inst.getReads());
    SmallVector<sass::FieldValue> fields;
    if (auto given = inst->getAttrOfType<DictionaryAttr>("test.fields"))
      for (NamedAttribute field : given)
        fields.push_back({field.getName().strref(), cast<IntegerAttr>(field.getValue()).getInt()});
    auto modifiers = inst->getAttrOfType<StringAttr>("test.modifiers");
    rewriter.setInsertionPoint(inst);
    sass::SassInst made =
        sass::buildInst(rewriter, inst.getLoc(), form, operands, fields, modifiers ? modifiers.getValue() : StringRef());
    if (!made)
      return failure();
    rewriter.replaceOp(inst, made);
    return success();
  }

  /// The value of a register at entry.
  Value atEntry(StringRef pin) {
    for (Operation &op : getOperation().getBody().front()) {
      auto name = op.getAttrOfType<StringAttr>(sass::kPinAttr);
      if ((name && name.getValue() == pin) || (pin == "PT" && isa<sass::PTOp>(op)))
        return op.getResult(0);
    }
    return {};
  }

  LogicalResult setGuard(IRRewriter &rewriter, sass::SassInst inst, StringRef text) {
    bool negated = text.consume_front("not ");
    SmallVector<Value> previous;
    for (unsigned result = 0; text != "PT" && result < inst->getNumResults(); ++result)
      if (Value value = atEntry(sass::getPinName(*inst.getPin(result))))
        previous.push_back(value);
    return inst.setGuard(atEntry(text), negated, previous);
  }

  static void say(sass::SassInst inst) {
    auto remark = inst->emitRemark();
    remark << inst.getFormName() << ' ' << sass::stringifyOpcodeClass(inst.getOpcodeClass()) << " FTZ "
           << inst.hasModifier(sass::Modifier::FTZ) << " guard " << (inst.isGuardNegated() ? "not" : "as is") << " shape 1 "
           << inst.getShape(1) << " control " << inst.getControl();
    if (auto pin = inst->getNumResults() ? inst.getPin(0) : std::nullopt)
      remark << " writes " << sass::getPinName(*pin) << (inst.getMergeOperand(0) ? " or keeps it" : "");
  }
};
} // namespace

namespace sass {
void registerTestInst() { PassRegistration<TestInst>(); }
} // namespace sass
