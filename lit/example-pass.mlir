// RUN: sass-opt %s --load-pass-plugin=%tools/SassDropFtz.so --pass-pipeline='builtin.module(sass.func(example-drop-ftz))' 2>&1 | FileCheck %s

// CHECK: remark: now FADD_0x221, stall 1
// CHECK: sass.FADD_0x221 guard(%PT) %0, -%0 raw 0x000fe200000000008000000404057221
// CHECK: sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000504067221
sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  sass.entry ^bb1
^bb1:
  %1 = sass.FADD_0x221.FTZ guard(%PT) %0, -%0 raw 0x000fe200000100008000000404057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %2 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000504067221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  sass.end
}
