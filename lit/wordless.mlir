// Instructions that are written without their word: registers and scheduling are said, and the word is put together.
// RUN: sass-opt %s | FileCheck %s
// RUN: sass-opt %s | sass-opt | FileCheck %s
// RUN: %mlir-opt %s | FileCheck %s
// RUN: sass-opt %s --mlir-print-op-generic | sass-opt | FileCheck %s

// CHECK-LABEL: sass.func "by_hand"
sass.func "by_hand" attributes {sm = "sm_87", pins = [[], [], ["R5"], []]} {
  %PT = sass.pt
  %RZ = sass.rz
  %r = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %s = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R6"}
  %p = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  sass.entry ^bb1
^bb1:
  // CHECK: sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802
  %0 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf regs("R2") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)
  // CHECK: sass.FADD_0x221.FTZ guard(%PT) %{{.*}}, -%{{.*}} raw 0x000fe200000100008000000404057221
  %1 = sass.FADD_0x221.FTZ guard(%PT) %r, -%r regs("R5") sched("B------:R-:W-:-:S01") : (!sass.reg, !sass.reg) -> (!sass.reg)
  // CHECK: sass.MOV_0x802 guard(not %{{.*}}) 0x00000002, 0xf merge(%{{.*}}) raw 0x000fe20000000f000000000200068802
  %2 = sass.MOV_0x802 guard(not %p) 0x00000002, 0xf merge(%s) regs("R6") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)
  // A value that is used before it is defined, a block argument, a branch back.
  // CHECK: sass.BRA_0x947 guard(%PT) %PT ^bb2(%{{.*}} : !sass.reg) raw 0x000fe200038000000000000000007947
  sass.BRA_0x947 guard(%PT) %PT ^bb2(%1 : !sass.reg) sched("B------:R-:W-:-:S01") : (!sass.pred) -> ()
^bb2(%arg: !sass.reg):
  // CHECK: sass.LDS_0x984 guard(%PT) [%{{.*}} + 0x10] raw 0x003ea40000000800000010000505
  %3 = sass.LDS_0x984 guard(%PT) [%arg + 0x10] regs("R5") sched("B01----:R-:W2:-:S02") : (!sass.reg) -> (!sass.reg)
  // CHECK: sass.LDS_0x984 guard(%PT) [%RZ + 0x10] raw 0x003ea4000000080000001000ff067984
  %4 = sass.LDS_0x984 guard(%PT) [%RZ + 0x10] regs("R6") sched("B01----:R-:W2:-:S02") : (!sass.reg) -> (!sass.reg)
  // CHECK: sass.BRA_0x947 guard(%{{.*}}) %PT ^bb2(%{{.*}} : !sass.reg), ^bb3 raw 0x000fe2000383ffff
  sass.BRA_0x947 guard(%p) %PT ^bb2(%3 : !sass.reg), ^bb3 sched("B------:R-:W-:-:S01") : (!sass.pred) -> ()
^bb3:
  // CHECK: sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d
  sass.EXIT_0x94d guard(%PT) %PT sched("B------:R-:W-:-:S05") : (!sass.pred) -> ()
}
