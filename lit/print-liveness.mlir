// RUN: sass-opt %s --sass-print-liveness -o /dev/null 2>&1 | FileCheck %s

// CHECK: liveness of k
// CHECK-NEXT: ^bb0: live in, peak R 2 P 1
// CHECK-NEXT: ^bb1: live in R 2 P 1, peak R 2 P 1
// CHECK-NEXT: ^bb2: live in, peak
sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R2"}
  %2 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  sass.entry ^bb1
^bb1:
  %3 = sass.MOV_0x802 guard(%2) 0x00000002, 0xf merge(%1) raw 0x000fe20000000f000000000200020802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  %4 = sass.FADD_0x221 guard(%PT) %0, -%3 raw 0x000fe200000000008000000204057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %5 = sass.FADD_0x221 guard(%PT) %0, -%4 raw 0x000fe200000000008000000504067221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  sass.fall ^bb2
^bb2:
  sass.end
}
