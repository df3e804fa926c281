// RUN: sass-opt %s --load-pass-plugin=%tools/SassTestPasses.so --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(sass.func(test-sass-inst))'

sass.func "unknown form" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{sm_87 has no form `FADD_0x999_R`; FADD has FADD_0x221_R_R_R}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "FADD_0x999_R"}
  sass.end
}

// -----

sass.func "unknown mnemonic" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{sm_87 has no instruction `FROB`}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "FROB_0x1_R"}
  sass.end
}

// -----

sass.func "operand count" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{reads 4 registers, not 3}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "FFMA_0x223_R_R_R_R"}
  sass.end
}

// -----

sass.func "unknown field" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{FMUL_0x220_R_R_R: field 9.X9: FMUL_0x220_R_R_R has no field `9.X9`; it has g, 0.R0}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "FMUL_0x220_R_R_R", test.fields = {"9.X9" = 1}}
  sass.end
}

// -----

sass.func "value" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{field 0.R0: 0.R0: 0x100 cannot be encoded}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "FMUL_0x220_R_R_R", test.fields = {"0.R0" = 256}}
  sass.end
}

// -----

sass.func "modifiers" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{modifiers '.E.128'}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "FMUL_0x220_R_R_R", test.modifiers = ".E.128"}
  sass.end
}

// -----

sass.func "file" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{UMOV_0xc82_UR_UR: operands: operand 0 cannot be PT}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "UMOV_0xc82_UR_UR"}
  sass.end
}

// -----

sass.func "terminator" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{sass.EXIT controls flow and cannot be put in}}
  %3 = sass.VOTE_0x806.ANY guard(%PT) not %2 raw 0x000fc600050e01000000000000037806 : (!sass.pred) -> (!sass.reg) {test.form = "EXIT_0x94d_P"}
  sass.end
}

// -----

sass.func "set field" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{'sass.FADD' op cannot set field 5.X0: FADD_0x221_R_R_R has no field `5.X0`}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.set = {"5.X0" = 1}}
  sass.end
}

// -----

sass.func "set shape" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{cannot write operand 1 as ~R#: FADD_0x221_R_R_R: operand 1 cannot be `~R#`, its shapes are `R#`}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.shape = {"1" = "~R#"}}
  sass.end
}

// -----

sass.func "guard" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // expected-error @below {{needs 1 previous values of what it writes, not 0}}
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.guard = "P3"}
  sass.end
}
