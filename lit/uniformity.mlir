// What the analysis finds, and for what reasons. The CHECK lines stand where they hold.
// RUN: sass-opt %s --load-pass-plugin=%tools/SassTestPasses.so --split-input-file --pass-pipeline='builtin.module(sass.func(test-sass-uniformity))' | FileCheck %s

// Sources. The block's coordinates, parameters and immediates are the same for all lanes; the thread's, the lane's number and whatever memory
// holds are not, also at an address that all lanes share: another may write it in between, unless it is memory that does not change.
sass.func "sources" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %UPT = sass.upt
  %RZ = sass.rz
  sass.entry ^bb1
^bb1:
  // CHECK-LABEL: sass.func "sources"
  // CHECK: SR_CTAID.X {{.*}} {test.results = ["uniform"]}
  %cta = sass.S2R_0x919 guard(%PT) SR_CTAID.X raw 0x000e2200000025000000000000027919 : () -> (!sass.reg)
  // CHECK: SR_TID.X {{.*}} {test.results = ["divergent"]}
  %tid = sass.S2R_0x919 guard(%PT) SR_TID.X raw 0x000e6200000021000000000000007919 : () -> (!sass.reg)
  // CHECK: SR_LANEID {{.*}} {test.results = ["divergent"]}
  %lane = sass.S2R_0x919 guard(%PT) SR_LANEID raw 0x001e2200000000000000000000067919 : () -> (!sass.reg)
  // CHECK: c[0x0][0x28] {{.*}} {test.results = ["uniform"]}
  %param = sass.IMAD_0x624.U32 guard(%PT) %RZ, %RZ, c[0x0][0x28] raw 0x000fe400078e00ff00000a00ff017624 : (!sass.reg, !sass.reg) -> (!sass.reg)
  // CHECK: ULDC{{.*}} {test.results = ["uniform", "uniform"]}
  %desc:2 = sass.ULDC_0xab9.64 guard(%UPT) c[0x0][0x118] raw 0x000fe40000000a000000460000047ab9 : () -> (!sass.ureg, !sass.ureg)
  // CHECK: LDG_0x981.E.CONSTANT{{.*}} {test.results = ["uniform"]}
  %kept = sass.LDG_0x981.E.CONSTANT guard(%PT) [%param, %cta<"64"> + 0x0], %PT desc(%desc#0, %desc#1) raw 0x000168000c1e99000000000404047981 : (!sass.reg, !sass.reg, !sass.pred, !sass.ureg, !sass.ureg) -> (!sass.reg)
  // CHECK: LDG_0x981.E.CONSTANT{{.*}} {test.results = ["divergent"]}
  %apart = sass.LDG_0x981.E.CONSTANT guard(%PT) [%param, %tid<"64"> + 0x0], %PT desc(%desc#0, %desc#1) raw 0x000168000c1e99000000000404047981 : (!sass.reg, !sass.reg, !sass.pred, !sass.ureg, !sass.ureg) -> (!sass.reg)
  // CHECK: LDG_0x981.E guard{{.*}} {test.results = ["divergent"]}
  %memory = sass.LDG_0x981.E guard(%PT) [%param, %cta<"64"> + 0x0], %PT desc(%desc#0, %desc#1) raw 0x000ea2000c1e19000000002402027981 : (!sass.reg, !sass.reg, !sass.pred, !sass.ureg, !sass.ureg) -> (!sass.reg)
  // CHECK: IADD3{{.*}} {test.results = ["uniform"]}
  %both = sass.IADD3_0x810 guard(%PT) %cta, -0x1, %RZ raw 0x040fe20007ffe0ffffffffff00057810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
  // CHECK: IADD3{{.*}} {test.results = ["divergent"]}
  %mixed = sass.IADD3_0x810 guard(%PT) %tid, -0x1, %RZ raw 0x040fe20007ffe0ffffffffff00057810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
  // CHECK: VOTE_0x806.ANY{{.*}} {test.results = ["uniform"]}
  %p = sass.ISETP_0x80c.GE.AND guard(%PT) %tid, 0x1, %PT raw 0x000fe20003f06270000000010000780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
  %vote = sass.VOTE_0x806.ANY guard(%PT) not %p raw 0x000fc600050e01000000000000037806 : (!sass.pred) -> (!sass.reg)
  sass.end
}

// -----

// Guards. What one keeps and another replaces differs, whatever is written.
sass.func "guards" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // CHECK-LABEL: sass.func "guards"
  %cta = sass.S2R_0x919 guard(%PT) SR_CTAID.X raw 0x000e2200000025000000000000027919 : () -> (!sass.reg)
  %tid = sass.S2R_0x919 guard(%PT) SR_TID.X raw 0x000e6200000021000000000000007919 : () -> (!sass.reg)
  // CHECK: ISETP{{.*}} {test.results = ["uniform"]}
  %same = sass.ISETP_0x80c.GE.AND guard(%PT) %cta, 0x1, %PT raw 0x000fe20003f06270000000010000780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
  // CHECK: ISETP{{.*}} {test.results = ["divergent"]}
  %own = sass.ISETP_0x80c.GE.AND guard(%PT) %tid, 0x1, %PT raw 0x000fe20003f06270000000010000780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
  // CHECK: merge{{.*}} {test.results = ["uniform"]}
  %a = sass.MOV_0x802 guard(%same) 0x00000002, 0xf merge(%cta) raw 0x000fe20000000f000000000200020802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  // CHECK: merge{{.*}} {test.results = ["divergent"]}
  %b = sass.MOV_0x802 guard(%own) 0x00000002, 0xf merge(%cta) raw 0x000fe20000000f000000000200020802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}

// -----

// Flow. Each side of a divergent branch has its own immediate, which is uniform there; where the sides meet it is not any more. A branch on
// a uniform predicate takes all lanes along.
sass.func "flow" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // CHECK-LABEL: sass.func "flow"
  %cta = sass.S2R_0x919 guard(%PT) SR_CTAID.X raw 0x000e2200000025000000000000027919 : () -> (!sass.reg)
  %tid = sass.S2R_0x919 guard(%PT) SR_TID.X raw 0x000e6200000021000000000000007919 : () -> (!sass.reg)
  %same = sass.ISETP_0x80c.GE.AND guard(%PT) %cta, 0x1, %PT raw 0x000fe20003f06270000000010000780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
  %own = sass.ISETP_0x80c.GE.AND guard(%PT) %tid, 0x1, %PT raw 0x000fe20003f06270000000010000780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
  // CHECK: MOV_0x802{{.*}}0x00000001, {{.*}} {test.results = ["uniform"]}
  %one = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  // CHECK: BRA{{.*}}() {test.divergent}
  sass.BRA_0x947 guard(%own) %PT ^bb3(%one : !sass.reg), ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb2:
  // CHECK: MOV_0x802{{.*}}0x00000003, {{.*}} {test.results = ["uniform"]}
  %three = sass.MOV_0x802 guard(%PT) 0x00000003, 0xf raw 0x000fe20000000f000000000300027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.fall ^bb3(%three : !sass.reg)
^bb3(%met: !sass.reg):
  // CHECK: MOV_0x802{{.*}}0x00000001, {{.*}} {test.args = ["divergent"], test.results = ["uniform"]}
  %again = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  // CHECK: BRA
  // CHECK-NOT: test.divergent
  sass.BRA_0x947 guard(%same) %PT ^bb5(%again : !sass.reg), ^bb4 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb4:
  %other = sass.MOV_0x802 guard(%PT) 0x00000003, 0xf raw 0x000fe20000000f000000000300027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.fall ^bb5(%other : !sass.reg)
^bb5(%together: !sass.reg):
  // CHECK: sass.end {test.args = ["uniform"]}
  sass.end
}

// -----

// A loop that lanes leave in different rounds: its counter is uniform inside, and not behind.
sass.func "rounds" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %RZ = sass.rz
  sass.entry ^bb1
^bb1:
  // CHECK-LABEL: sass.func "rounds"
  %tid = sass.S2R_0x919 guard(%PT) SR_TID.X raw 0x000e6200000021000000000000007919 : () -> (!sass.reg)
  %zero = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100057802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.fall ^bb2(%zero, %tid : !sass.reg, !sass.reg)
^bb2(%round: !sass.reg, %left: !sass.reg):
  %next = sass.IADD3_0x810 guard(%PT) %round, -0x1, %RZ raw 0x040fe20007ffe0ffffffffff00057810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
  %own = sass.ISETP_0x80c.GE.AND guard(%PT) %left, 0x1, %PT raw 0x000fe20003f06270000000010000780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
  // CHECK: BRA{{.*}}() {test.divergent}
  sass.BRA_0x947 guard(%own) %PT ^bb2(%next, %left : !sass.reg, !sass.reg), ^bb3 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
^bb3:
  // CHECK: IADD3{{.*}} {test.results = ["divergent"]}
  %behind = sass.IADD3_0x810 guard(%PT) %next, -0x1, %RZ raw 0x040fe20007ffe0ffffffffff00057810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
  sass.end
}
