// What upstream passes merge, and what they leave.
// RUN: sass-opt %s --canonicalize --cse | FileCheck %s

sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %UPT = sass.upt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R3"}
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  %d = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR4"}
  // CHECK: sass.entry ^bb1, ^bb2, ^bb3
  sass.entry ^bb1, ^bb2, ^bb3
^bb1:
  // Other registers, another stall: the same.
  // CHECK: %[[SUM:.*]] = sass.FADD_0x221 guard(%PT) %[[A:.*]], -%[[B:.*]] raw 0x000fe20000000000800000030405
  // CHECK-NOT: sass.FADD_0x221 guard(%PT) %[[A]], -%[[B]]
  %2 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fe200000000008000000304057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %3 = sass.FADD_0x221 guard(%PT) %0, -%1 raw 0x000fc800000000008000000304067221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  // Not negated, another modifier, under a guard: others.
  // CHECK: sass.FADD_0x221 guard(%PT) %[[A]], %[[B]]
  // CHECK: sass.FADD_0x221.FTZ guard(%PT) %[[A]], -%[[B]]
  // CHECK: sass.FADD_0x221 guard(%{{[0-9]+}}) %[[A]], -%[[B]] merge(%[[SUM]])
  %4 = sass.FADD_0x221 guard(%PT) %0, %1 raw 0x000fe200000000000000000304077221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %5 = sass.FADD_0x221.FTZ guard(%PT) %0, -%1 raw 0x000fe200000100008000000304087221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %6 = sass.FADD_0x221 guard(%p) %0, -%1 merge(%3) raw 0x000fe200000000008000000304060221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  // What depends on the active lanes, and the clock, is asked as often as it was. Also where nobody hears the answer.
  // CHECK-COUNT-2: sass.SHFL
  // CHECK-COUNT-2: sass.CS2R_0x805.32
  // CHECK-COUNT-2: sass.VOTE_
  %7 = sass.SHFL_0xf89.BFLY guard(%PT) %0, 0x10, 0x001f raw 0x001e2400000e00000e001f0009007f89 : (!sass.reg, !sass.imm, !sass.imm) -> (!sass.reg)
  %8 = sass.SHFL_0xf89.BFLY guard(%PT) %0, 0x10, 0x001f raw 0x001e2400000e00000e001f0009007f89 : (!sass.reg, !sass.imm, !sass.imm) -> (!sass.reg)
  %9 = sass.CS2R_0x805.32 guard(%PT) SR_GLOBALTIMERLO raw 0x001fe400000052000000000000057805 : () -> (!sass.reg)
  %10 = sass.CS2R_0x805.32 guard(%PT) SR_GLOBALTIMERLO raw 0x001fe400000052000000000000057805 : () -> (!sass.reg)
  %11 = sass.VOTE_0x806.ANY guard(%PT) not %p raw 0x000fc600050e01000000000000037806 : (!sass.pred) -> (!sass.reg)
  %12 = sass.VOTE_0x806.ANY guard(%PT) not %p raw 0x000fc600050e01000000000000037806 : (!sass.pred) -> (!sass.reg)
  // An atomic happens twice; what reads the sums keeps them.
  // CHECK-COUNT-4: sass.RED_
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%2, %3<"64"> + 0x0], %4 desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%2, %3<"64"> + 0x0], %4 desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%5, %6<"64"> + 0x0], %7 desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%8, %9<"64"> + 0x0], %10 desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  // CHECK: sass.EXIT
  sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
// No branch gets here. Twice the same, and a label that no operand names: all stay.
// CHECK: ^bb2:
// CHECK-NEXT: sass.label 0
// CHECK-NEXT: sass.EXIT
// CHECK: ^bb3:
// CHECK-NEXT: sass.label 1
// CHECK-NEXT: sass.EXIT
^bb2:
  sass.label 0
  sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
^bb3:
  sass.label 1
  sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
}
