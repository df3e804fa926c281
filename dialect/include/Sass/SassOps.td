//===- SassOps.td - the ops of the dialect that are no instructions ----------------------------------===//

#ifndef SASS_OPS_TD
#define SASS_OPS_TD

include "Sass/SassBase.td"

def Sass_FuncOp : Sass_Op<"func", [Symbol, IsolatedFromAbove, OpAsmOpInterface]> {
  let summary = "the code of one section: a kernel and its local functions";
  let description = [{
    `sm` names the target. `pins` has, for every block with arguments in order, one list of the physical registers of its arguments.
    `tail` is what follows the last instruction (padding), as runs of words: "0x..." or "0x... x7".
  }];
  let arguments = (ins StrAttr:$sym_name, StrAttr:$sm);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::StringRef":$sm)>];
}

class Sass_ConstOp<string mnemonic, string asmName, TypeDef type, string text>
    : Sass_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = text;
  let results = (outs type:$result);
  let assemblyFormat = "attr-dict";
  let extraClassDeclaration = "static constexpr ::llvm::StringLiteral kAsmName = \"" # asmName # "\";";
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getResult(), kAsmName); }
  }];
}
def Sass_PTOp : Sass_ConstOp<"pt", "PT", Sass_Pred, "the predicate that is always true">;
def Sass_UPTOp : Sass_ConstOp<"upt", "UPT", Sass_UPred, "the uniform predicate that is always true">;
def Sass_RZOp : Sass_ConstOp<"rz", "RZ", Sass_Reg, "the register that is always zero">;
def Sass_URZOp : Sass_ConstOp<"urz", "URZ", Sass_UReg, "the uniform register that is always zero">;

def Sass_LabelOp : Sass_Op<"label", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a place in the code that an operand names without branching to it";
  let description = [{
    BSSY, LEPC, WARPSYNC.COLLECTIVE and a CALL that comes back name a place by the id of its label. It lowers to nothing. It has an
    effect, so that it stays where it is and exists once.
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$id);
  let assemblyFormat = "custom<LabelId>($id) attr-dict";
}

class Sass_PseudoTerm<string mnemonic, string text, list<Trait> traits = []>
    : Sass_Op<mnemonic, traits # [Terminator, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = text;
}

class Sass_PseudoBranch<string mnemonic, string text> : Sass_PseudoTerm<mnemonic, text, [BranchOpInterface]> {
  let arguments = (ins Variadic<Sass_Value>:$values, DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$succ);
  let successors = (successor VariadicSuccessor<AnySuccessor>:$dests);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values, "::mlir::BlockRange":$dests, "::llvm::ArrayRef<int32_t>":$segments), [{
    $_state.addOperands(values);
    $_state.addSuccessors(dests);
    $_state.getOrAddProperties<Properties>().succ = $_builder.getDenseI32ArrayAttr(segments);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::SuccessorOperands getSuccessorOperands(unsigned index) {
      return ::sass::detail::getSuccessorOperands(getOperation(), getSuccAttrName(), getSucc(), index);
    }
  }];
}

def Sass_EntryOp : Sass_PseudoBranch<"entry", "enters the code, also the parts that no branch reaches; lowers to nothing">;
def Sass_FallOp : Sass_PseudoBranch<"fall", "control goes on to the next block; lowers to nothing">;
def Sass_EndOp : Sass_PseudoTerm<"end", "the code ends here without an instruction that says so; lowers to nothing"> {
  let assemblyFormat = "attr-dict";
}

#endif // SASS_OPS_TD
