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
