// RUN: sass-opt %s --sass-print-uniformity -o /dev/null 2>&1 | FileCheck %s

// An immediate is uniform, a register at entry is not, and nothing is that was computed from one that is not.
// CHECK: uniformity of k
// CHECK: %PT: uniform
// CHECK: %0: divergent
// CHECK: %1: divergent
// CHECK: %2: uniform
// CHECK: %3: uniform
// CHECK: %4: divergent
// CHECK: %5: divergent
sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  sass.entry ^bb1
^bb1:
  %2 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  %3 = sass.FADD_0x221 guard(%PT) %2, -%2 raw 0x000fe200000000008000000202057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %4 = sass.FADD_0x221 guard(%PT) %0, -%2 raw 0x000fe200000000008000000204057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  // Not written where P0 is false.
  %5 = sass.MOV_0x802 guard(%1) 0x00000002, 0xf merge(%2) raw 0x000fe20000000f000000000200020802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}
