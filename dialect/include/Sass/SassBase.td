//===- SassBase.td - the dialect, its types, and the base classes of its ops -------------------------===//

#ifndef SASS_BASE_TD
#define SASS_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/Properties.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sass_Dialect : Dialect {
  let name = "sass";
  let cppNamespace = "::sass";
  let summary = "The machine code of NVIDIA GPUs in SSA form.";
  let description = [{
    One op per instruction, one op class per mnemonic. The 128-bit instruction word is the truth and is kept inline in the op;
    mnemonic, opcode, modifiers and immediates in the text are views of it. Registers are SSA values.
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    // Instruction ops have no assembly format of their own: one parser and one printer serve all of them. The parser is looked
    // up by the whole dotted name of the text (`sass.LDG_0x981.E.128`), which no registered op has.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
    ::llvm::unique_function<void(::mlir::Operation *, ::mlir::OpAsmPrinter &)>
    getOperationPrinter(::mlir::Operation *op) const override;

    /// Takes what portable passes find, instead of remarks. The listener owns what it gets; it is called from any thread.
    using PassListener = std::function<void(FuncOp func, SassPassRun *run)>;
    void setPassListener(PassListener listener) { passListener = std::move(listener); }
    const PassListener &getPassListener() const { return passListener; }

  private:
    PassListener passListener;
    void registerInstructions();
  }];
}

//===-- Types ---------------------------------------------------------------------------------------===//

class Sass_Type<string cppName, string name, string text> : TypeDef<Sass_Dialect, cppName> {
  let mnemonic = name;
  let summary = text;
}

def Sass_Reg : Sass_Type<"Reg", "reg", "a 32-bit register of one thread (R0 to R254)">;
def Sass_UReg : Sass_Type<"UReg", "ureg", "a 32-bit register of one warp (UR0 to UR62)">;
def Sass_Pred : Sass_Type<"Pred", "pred", "a predicate of one thread (P0 to P6)">;
def Sass_UPred : Sass_Type<"UPred", "upred", "a predicate of one warp (UP0 to UP6)">;
def Sass_Imm : Sass_Type<"Imm", "imm", "an immediate: stands in type lists for an operand that is no SSA value">;
def Sass_Barrier : Sass_Type<"Barrier", "barrier", "a convergence barrier (B0 to B15)">;

def Sass_Value : AnyTypeOf<[Sass_Reg, Sass_UReg, Sass_Pred, Sass_UPred, Sass_Barrier], "a SASS register">;

//===-- Instructions --------------------------------------------------------------------------------===//

class Sass_Op<string mnemonic, list<Trait> traits = []> : Op<Sass_Dialect, mnemonic, traits>;

def SassInst : OpInterface<"SassInst"> {
  let cppNamespace = "::sass";
  let description = [{
    An instruction. Its knowledge comes from the engine's table of functions (`sass_engine.h`); every query that needs it fails
    softly (an empty answer, or a diagnostic where one is offered) when there is no engine.
  }];
  let methods = [
    InterfaceMethod<"The inline property.", "::sass::InstData &", "getInstData", (ins), "",
      [{ return $_op.getProperties().inst; }]>,
    StaticInterfaceMethod<"Puts the property into an op that is being built.", "void", "initState",
      (ins "::mlir::OperationState &":$state, "const ::sass::InstData &":$data), "",
      [{ state.getOrAddProperties<typename ConcreteOp::Properties>().inst = data; }]>,
  ];
  let verify = [{ return ::sass::detail::verifyInst($_op); }];
  let extraClassDeclaration = [{
    //===-- What it is --===//

    ::SassWord getWord() { return getInstData().word; }
    /// Of its target; `kOpaqueForm` for a word that no table knows.
    ::sass::FormId getForm();
    /// "FFMA_0x223_R_R_R_R", empty for an opaque word, as are the next two.
    ::llvm::StringRef getFormName();
    /// "FFMA"
    ::llvm::StringRef getMnemonic();
    /// "FFMA_0x223.FTZ"
    ::llvm::StringRef getFullName();
    /// Word bits 11:0.
    unsigned getOpcode() { return getWord().lo & 0xfff; }
    /// The pipe that executes it.
    ::sass::OpcodeClass getOpcodeClass();
    bool hasModifier(::sass::Modifier modifier);
    /// For a modifier that is no name (`???3`).
    bool hasModifier(::llvm::StringRef modifier);
    /// SASS_EFFECT_*
    unsigned getEffects();
    /// What the engine knows of all instructions like this one; null without a word.
    const ::SassLayout *getLayout() { return getInstData().layout; }

    //===-- Fields. On failure a diagnostic says why, and nothing changes. Inside a pattern: under `modifyOpInPlace`. --===//

    /// A field by its name in the tables ("2.X0"); none when the form has no such field.
    std::optional<int64_t> getField(::llvm::StringRef name);
    /// Registers too, of results: an operand's register is that of the value it reads.
    ::llvm::LogicalResult setField(::llvm::StringRef name, int64_t value);
    /// Drops and adds modifiers (".FTZ"); other modifiers stay.
    ::llvm::LogicalResult editModifiers(::llvm::StringRef drop, ::llvm::StringRef add);
    /// How a printed operand stands in the text, `#` for what differs from word to word: "-|R#|", "c[X#][X#]". Empty if there is none.
    ::llvm::StringRef getShape(unsigned operand);
    /// Negates an operand, or takes its absolute value.
    ::llvm::LogicalResult setShape(unsigned operand, ::llvm::StringRef shape);

    //===-- Guard and operands --===//

    /// The guard's value; null for an instruction without a guard field.
    ::mlir::Value getGuard();
    /// Whether it executes where the guard is false.
    bool isGuardNegated();
    /// Whether the guard is something else than constant true.
    bool isGuarded() { return getInstData().isGuarded(); }
    /// `previous` is what the registers of the results keep where it does not execute, one value for each that it does not read anyway;
    /// none if `guard` is constant true.
    ::llvm::LogicalResult setGuard(::mlir::Value guard, bool negated = false, ::mlir::ValueRange previous = {});
    /// What the word names as read, without the guard; hidden operands last.
    ::mlir::OperandRange getReads();
    /// The previous value of the register of result `result`; null when it is always written.
    ::mlir::Value getMergeOperand(unsigned result);

    //===-- Registers and scheduling --===//

    /// The register that the word names for a result; none when it is virtual.
    std::optional<::SassPin> getPin(unsigned result);
    /// Scheduling control, word bits 125:105: stall in 3:0, yield in 4, write and read scoreboard in 7:5 and 10:8, scoreboards waited for in
    /// 16:11, operand-cache flags in 20:17.
    uint32_t getControl() { return uint32_t(getWord().hi >> 41) & 0x1fffff; }
    void setControl(uint32_t control);
  }];
}

// The word and what is cached from it, inline in the op.
def Sass_InstProp : Property<"::sass::InstData", "the instruction", "const ::sass::InstData &"> {
  let convertToAttribute = [{ return ::sass::toAttribute($_ctxt, $_storage); }];
  let convertFromAttribute = [{ return ::sass::fromAttribute($_storage, $_attr, $_diag); }];
  let hashProperty = "::sass::hash_value($_storage)";
  let writeToMlirBytecode = [{ ::sass::writeBytecode($_writer, $_storage); }];
  let readFromMlirBytecode = [{
    if (::mlir::failed(::sass::readBytecode($_reader, $_storage)))
      return ::mlir::failure();
  }];
}

defvar instBuilder = OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$operands, "const ::sass::InstData &":$inst), [{
    $_state.addTypes(results);
    $_state.addOperands(operands);
    $_state.getOrAddProperties<Properties>().inst = inst;
  }]>;

defvar effectMethods = [{
    void getEffects(::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance> &effects) {
      ::sass::detail::getInstEffects(getProperties().inst, effects);
    }
    ::mlir::Speculation::Speculatability getSpeculatability() {
      return ::sass::detail::getInstSpeculatability(getProperties().inst);
    }
  }];

// An instruction after which the next one of the block runs.
class Sass_Inst<string mnemonic>
    : Sass_Op<mnemonic, [DeclareOpInterfaceMethods<SassInst>, MemoryEffectsOpInterface, ConditionallySpeculatable]> {
  let arguments = (ins Variadic<Sass_Value>:$srcs, Sass_InstProp:$inst);
  let results = (outs Variadic<Sass_Value>:$dsts);
  let skipDefaultBuilders = 1;
  let builders = [instBuilder];
  let extraClassDeclaration = effectMethods;
}

// A call: has operands and results beyond those its word names. `writes` has the registers of those results.
class Sass_CallInst<string mnemonic>
    : Sass_Op<mnemonic, [DeclareOpInterfaceMethods<SassInst>, MemoryEffectsOpInterface, ConditionallySpeculatable]> {
  let arguments = (ins Variadic<Sass_Value>:$srcs, Sass_InstProp:$inst, OptionalAttr<StrArrayAttr>:$writes);
  let results = (outs Variadic<Sass_Value>:$dsts);
  let skipDefaultBuilders = 1;
  let builders = [instBuilder];
  let extraClassDeclaration = effectMethods;
}

// An instruction that ends its block. Values for successors follow the instruction's own operands; `succ` has their number for each.
class Sass_TermInst<string mnemonic>
    : Sass_Op<mnemonic, [DeclareOpInterfaceMethods<SassInst>, MemoryEffectsOpInterface, BranchOpInterface, Terminator]> {
  let arguments = (ins Variadic<Sass_Value>:$srcs, Sass_InstProp:$inst, DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$succ);
  let results = (outs Variadic<Sass_Value>:$dsts);
  let successors = (successor VariadicSuccessor<AnySuccessor>:$dests);
  let skipDefaultBuilders = 1;
  let builders = [instBuilder];
  let extraClassDeclaration = [{
    void getEffects(::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance> &effects) {
      ::sass::detail::getInstEffects(getProperties().inst, effects);
    }
    ::mlir::SuccessorOperands getSuccessorOperands(unsigned index) {
      return ::sass::detail::getSuccessorOperands(getOperation(), getSuccAttrName(), getSucc(), index);
    }
  }];
}

#endif // SASS_BASE_TD
