// What authors of passes call (dialect/test/TestInst.cpp has the attributes), and what it says when something does not fit.
// RUN: sass-opt %s --load-pass-plugin=%tools/SassTestPasses.so --pass-pipeline='builtin.module(sass.func(test-sass-inst))' 2>&1 | FileCheck %s

sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R5"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P3"}
  sass.entry ^bb1
^bb1:
  // CHECK: remark: FADD_0x221_R_R_R fma FTZ 0 guard as is shape 1 R# control 2033 writes R5{{$}}
  // CHECK: remark: FADD_0x221_R_R_R fma FTZ 1 guard not shape 1 |R#| control 2033 writes R5 or keeps it
  // CHECK: sass.func "k"
  // Another form, its fields, all its modifiers.
  // CHECK: sass.FMUL_0x220.FTZ.RZ guard(%PT) %0, %1 raw 0x000fc2000041c0000000000504097220 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %a = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000504057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.form = "FMUL_0x220_R_R_R", test.fields = {"0.R0" = 9}, test.modifiers = ".FTZ.RZ"}
  // CHECK: sass.MOV_0x802 guard(%PT) 0x12345678, 0x3 raw 0x000fe200000003001234567800027802
  %b = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg) {test.set = {"1.X0" = 0x12345678, "2.X0" = 3}}
  // CHECK: sass.FADD_0x221 guard(%PT) |%0|, %1 raw
  %c = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000504057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.say, test.shape = {"1" = "|R#|", "2" = "R#"}}
  // Guards come and go with what the result keeps.
  // CHECK: sass.FADD_0x221 guard(not %2) %0, -%1 merge(%1) raw 0x000fe20000000000800000050405b221
  %d = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000504057221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.guard = "not P3"}
  // CHECK: sass.FADD_0x221.FTZ guard(%PT) |%0|, %1 raw 0x000fe200000102000000000504057221
  %e = sass.FADD_0x221.FTZ guard(not %2) |%0|, %1 merge(%1) raw 0x000fe20000010200000000050405b221 : (!sass.reg, !sass.reg) -> (!sass.reg) {test.say, test.guard = "PT"}
  sass.end
}
