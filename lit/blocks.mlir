// Blocks that do the same are one to upstream's canonicalizer, unless they depend on which lanes are active.
// RUN: sass-opt %s --canonicalize=region-simplify=aggressive | FileCheck %s

// CHECK-LABEL: sass.func "merged"
// CHECK: sass.MOV
// CHECK-NOT: sass.MOV
// CHECK-LABEL: sass.func "vote"
// CHECK-COUNT-2: sass.VOTE_
// CHECK-LABEL: sass.func "shuffle"
// CHECK-COUNT-2: sass.SHFL_
// CHECK-LABEL: sass.func "clock"
// CHECK-COUNT-2: sass.CS2R_
// CHECK-LABEL: sass.func "barrier"
// CHECK-COUNT-2: sass.BAR_

sass.func "merged" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  %to = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R10"}
  %hi = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R11"}
  %d = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR4"}
  sass.entry ^bb1
^bb1:
  sass.BRA_0x947 guard(%p) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  %a2 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.fall ^bb4(%a2 : !sass.reg)
^bb3:
  %a3 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.fall ^bb4(%a3 : !sass.reg)
^bb4(%x: !sass.reg):
  sass.label 0
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%to, %hi<"64"> + 0x0], %x desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.end
}

sass.func "vote" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  %to = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R10"}
  %hi = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R11"}
  %d = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR4"}
  sass.entry ^bb1
^bb1:
  sass.BRA_0x947 guard(%p) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  %a2 = sass.VOTE_0x806.ANY guard(%PT) not %p raw 0x000fc600050e01000000000000037806 : (!sass.pred) -> (!sass.reg)
  sass.fall ^bb4(%a2 : !sass.reg)
^bb3:
  %a3 = sass.VOTE_0x806.ANY guard(%PT) not %p raw 0x000fc600050e01000000000000037806 : (!sass.pred) -> (!sass.reg)
  sass.fall ^bb4(%a3 : !sass.reg)
^bb4(%x: !sass.reg):
  sass.label 0
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%to, %hi<"64"> + 0x0], %x desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.end
}

sass.func "shuffle" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  %to = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R10"}
  %hi = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R11"}
  %d = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR4"}
  %r = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R9"}
  sass.entry ^bb1
^bb1:
  sass.BRA_0x947 guard(%p) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  %a2 = sass.SHFL_0xf89.BFLY guard(%PT) %r, 0x10, 0x001f raw 0x001e2400000e00000e001f0009007f89 : (!sass.reg, !sass.imm, !sass.imm) -> (!sass.reg)
  sass.fall ^bb4(%a2 : !sass.reg)
^bb3:
  %a3 = sass.SHFL_0xf89.BFLY guard(%PT) %r, 0x10, 0x001f raw 0x001e2400000e00000e001f0009007f89 : (!sass.reg, !sass.imm, !sass.imm) -> (!sass.reg)
  sass.fall ^bb4(%a3 : !sass.reg)
^bb4(%x: !sass.reg):
  sass.label 0
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%to, %hi<"64"> + 0x0], %x desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.end
}

sass.func "clock" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  %to = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R10"}
  %hi = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R11"}
  %d = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR4"}
  sass.entry ^bb1
^bb1:
  sass.BRA_0x947 guard(%p) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  %a2 = sass.CS2R_0x805.32 guard(%PT) SR_GLOBALTIMERLO raw 0x001fe400000052000000000000057805 : () -> (!sass.reg)
  sass.fall ^bb4(%a2 : !sass.reg)
^bb3:
  %a3 = sass.CS2R_0x805.32 guard(%PT) SR_GLOBALTIMERLO raw 0x001fe400000052000000000000057805 : () -> (!sass.reg)
  sass.fall ^bb4(%a3 : !sass.reg)
^bb4(%x: !sass.reg):
  sass.label 0
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%to, %hi<"64"> + 0x0], %x desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.end
}

sass.func "barrier" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  %to = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R10"}
  %hi = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R11"}
  %d = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR4"}
  sass.entry ^bb1
^bb1:
  sass.BRA_0x947 guard(%p) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  sass.BAR_0xb1d.SYNC.DEFER_BLOCKING guard(%PT) 0x0, 0x000 raw 0x000fec00000100000000000000007b1d : (!sass.imm, !sass.imm) -> ()
  sass.fall ^bb4(%to : !sass.reg)
^bb3:
  sass.BAR_0xb1d.SYNC.DEFER_BLOCKING guard(%PT) 0x0, 0x000 raw 0x000fec00000100000000000000007b1d : (!sass.imm, !sass.imm) -> ()
  sass.fall ^bb4(%to : !sass.reg)
^bb4(%x: !sass.reg):
  sass.label 0
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%to, %hi<"64"> + 0x0], %x desc(%d, %d) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.end
}
