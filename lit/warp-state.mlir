// UR, UP and B exist once for all lanes of a warp. Where lanes may be apart, two writes of the same are not one, and a write that nobody reads
// stays; where they are together, a write is like any other.
// RUN: sass-opt %s --canonicalize --cse | FileCheck %s
// RUN: sass-opt %s --emit-bytecode | sass-opt --canonicalize --cse | FileCheck %s --check-prefix=FIRST
// RUN: sass-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// Behind a branch that hangs on the lane there is nothing that brings the lanes together.
// CHECK-LABEL: sass.func "apart"
// CHECK: sass.UMOV
// CHECK: sass.UMOV
// CHECK: sass.UMOV
// CHECK-LABEL: sass.func "together"
// CHECK: %[[ONE:.*]] = sass.UMOV_0x882 guard(%UPT) 0x00000001
// CHECK-NOT: sass.UMOV
// CHECK: sass.BSYNC
// CHECK: %[[FOUR:.*]] = sass.UMOV
// CHECK-NOT: sass.UMOV
// CHECK: desc(%[[ONE]], %[[ONE]])
// CHECK: desc(%[[FOUR]], %[[FOUR]])

// FIRST: sass.UMOV
// FIRST: sass.UMOV
// FIRST: sass.UMOV

// GENERIC: "sass.UMOV"({{.*}}) <{inst = {sm = "sm_87", word
// GENERIC: "sass.UMOV"({{.*}}) <{inst = {sm = "sm_87", word
// GENERIC: "sass.UMOV"({{.*}}) <{inst = {sm = "sm_87", word
// GENERIC: "sass.UMOV"({{.*}}) <{inst = {converged, sm = "sm_87", word
sass.func "apart" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %UPT = sass.upt
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  sass.entry ^bb1
^bb1:
  sass.BRA_0x947 guard(%p) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  sass.fall ^bb3
^bb3:
  %a = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100027882 : (!sass.imm) -> (!sass.ureg)
  %b = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100037882 : (!sass.imm) -> (!sass.ureg)
  %c = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100047882 : (!sass.imm) -> (!sass.ureg)
  sass.end
}

sass.func "together" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %UPT = sass.upt
  %r = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R10"}
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  sass.entry ^bb1
^bb1:
  // Two that are the same, and one that nobody reads.
  %a = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100027882 : (!sass.imm) -> (!sass.ureg)
  %b = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100037882 : (!sass.imm) -> (!sass.ureg)
  %c = sass.UMOV_0x882 guard(%UPT) 0x00000003 raw 0x000fe400000000000000000300057882 : (!sass.imm) -> (!sass.ureg)
  %barrier = sass.BSSY_0x945 guard(%PT) %PT, label(0) raw 0x000fe200038000000000081000027945 : (!sass.pred) -> (!sass.barrier)
  sass.BRA_0x947 guard(%p) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  sass.fall ^bb3
^bb3:
  sass.label 0
  sass.BSYNC_0x941 guard(%PT) %PT, %barrier raw 0x000fea00038000000000000000027941 : (!sass.pred, !sass.barrier) -> ()
  %d = sass.UMOV_0x882 guard(%UPT) 0x00000004 raw 0x000fe400000000000000000400047882 : (!sass.imm) -> (!sass.ureg)
  %e = sass.UMOV_0x882 guard(%UPT) 0x00000004 raw 0x000fe400000000000000000400057882 : (!sass.imm) -> (!sass.ureg)
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%r, %r<"64"> + 0x0], %r desc(%a, %b) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.RED_0x98e.E.ADD.F32.FTZ.RN.STRONG.GPU guard(%PT) [%r, %r<"64"> + 0x0], %r desc(%d, %e) raw 0x0001e2000c10e788000000110a00798e : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
  sass.end
}

// Groups of lanes with other masks come out of WARPSYNC one after the other.
// CHECK-LABEL: sass.func "in groups"
// CHECK: sass.UMOV
// CHECK: sass.UMOV
// CHECK: sass.end
sass.func "in groups" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %UPT = sass.upt
  %r = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R10"}
  sass.entry ^bb1
^bb1:
  sass.WARPSYNC_0x348.EXCLUSIVE guard(%PT) %PT, %r raw 0x000fea0003c00000000000000a007348 : (!sass.pred, !sass.reg) -> ()
  %a = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100027882 : (!sass.imm) -> (!sass.ureg)
  %b = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100037882 : (!sass.imm) -> (!sass.ureg)
  sass.end
}

// Lanes of two places meet in a collective, and each goes on behind its own: they are as far apart as before. Who came alone stays together.
// CHECK-LABEL: sass.func "in collectives"
// CHECK: sass.UMOV
// CHECK: sass.UMOV
// CHECK: sass.EXIT
// CHECK: sass.UMOV
// CHECK: sass.UMOV
// CHECK: sass.EXIT
// CHECK-LABEL: sass.func "in a collective of its own"
// CHECK-NOT: sass.UMOV
// CHECK: sass.EXIT
sass.func "in collectives" attributes {sm = "sm_120"} {
  %PT = sass.pt
  %UPT = sass.upt
  %r = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R2"}
  %q = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P1"}
  sass.entry ^bb1
^bb1:
  sass.BRA_0x947 guard(%p) %PT ^bb4, ^bb2 raw 0x000fea00038000000000000000181947 : (!sass.pred) -> ()
^bb2:
  sass.WARPSYNC_0x348.COLLECTIVE guard(%PT) %PT, %r, label(0) raw 0x000fea0003c000000000000002087348 : (!sass.pred, !sass.reg) -> ()
  %v0 = sass.VOTE_0x806.ANY guard(%PT) %q raw 0x000fea00000001000000000000ff7806 : (!sass.pred) -> (!sass.pred)
  sass.ENDCOLLECTIVE_0x91b guard(%PT) %PT raw 0x000fea0003800000000000000000791b : (!sass.pred) -> ()
  sass.fall ^bb3
^bb3:
  sass.label 0
  %a = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fea00000000000000000100047882 : (!sass.imm) -> (!sass.ureg)
  %b = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fea00000000000000000100057882 : (!sass.imm) -> (!sass.ureg)
  sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
^bb4:
  sass.WARPSYNC_0x348.COLLECTIVE guard(%PT) %PT, %r, label(1) raw 0x000fea0003c000000000000002087348 : (!sass.pred, !sass.reg) -> ()
  %v1 = sass.VOTE_0x806.ANY guard(%PT) %q raw 0x000fea00000001000000000000ff7806 : (!sass.pred) -> (!sass.pred)
  sass.ENDCOLLECTIVE_0x91b guard(%PT) %PT raw 0x000fea0003800000000000000000791b : (!sass.pred) -> ()
  sass.fall ^bb5
^bb5:
  sass.label 1
  %c = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fea00000000000000000100067882 : (!sass.imm) -> (!sass.ureg)
  %d = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fea00000000000000000100077882 : (!sass.imm) -> (!sass.ureg)
  sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
}

sass.func "in a collective of its own" attributes {sm = "sm_120"} {
  %PT = sass.pt
  %UPT = sass.upt
  %q = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  sass.entry ^bb1
^bb1:
  %r = sass.MOV_0x802 guard(%PT) 0xffffffff, 0xf raw 0x000fea0000000f00ffffffff00027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.WARPSYNC_0x348.COLLECTIVE guard(%PT) %PT, %r, label(0) raw 0x000fea0003c000000000000002087348 : (!sass.pred, !sass.reg) -> ()
  %v0 = sass.VOTE_0x806.ANY guard(%PT) %q raw 0x000fea00000001000000000000ff7806 : (!sass.pred) -> (!sass.pred)
  sass.ENDCOLLECTIVE_0x91b guard(%PT) %PT raw 0x000fea0003800000000000000000791b : (!sass.pred) -> ()
  sass.fall ^bb2
^bb2:
  sass.label 0
  %a = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fea00000000000000000100047882 : (!sass.imm) -> (!sass.ureg)
  %b = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fea00000000000000000100057882 : (!sass.imm) -> (!sass.ureg)
  sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
}
