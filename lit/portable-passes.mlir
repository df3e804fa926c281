// The engine's passes on live functions: what no edit names stays, with its location and foreign attributes.
// RUN: sass-opt %s --split-input-file --sass-ffma-deftz --mlir-print-debuginfo 2>/dev/null | FileCheck %s
// RUN: sass-opt %s --split-input-file --sass-ffma-deftz -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAY
// RUN: sass-opt %s --split-input-file --sass-ffma-deftz=report=true 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: sass-opt %s --split-input-file --pass-pipeline='builtin.module(sass.func(sass-ffma-deftz{entry=1}))' 2>&1 | FileCheck %s --check-prefix=ENTRY

// SAY: remark: ffma-deftz [apply]: FTZ dropped at 1 site (1 op rewritten)
// CHECK: sass.FFMA_0x223 guard(%PT) %{{.*}}, %{{.*}}, %{{.*}} raw 0x000fe200000000040000000404057223 : {{.*}} {other.note = "kept"} loc([[FFMA:#loc[0-9]*]])
// CHECK: sass.FADD_0x221.FTZ
// CHECK: [[FFMA]] = loc("k":16:0)
// REPORT: remark: ffma-deftz [report]: would fire at 1 site - no bytes changed
// REPORT: sass.FFMA_0x223.FTZ
// ENTRY-NOT: FTZ dropped
// ENTRY: remark: ffma-deftz [apply]: fires nowhere
// ENTRY: sass.FFMA_0x223.FTZ
sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  sass.entry ^bb1
^bb1:
  %1 = sass.FFMA_0x223.FTZ guard(%PT) %0, %0, %0 raw 0x000fe200000100040000000404057223 : (!sass.reg, !sass.reg, !sass.reg) -> (!sass.reg) {other.note = "kept"} loc("k":16:0)
  %2 = sass.FADD_0x221.FTZ guard(%PT) %0, -%0 raw 0x000fe200000100008000000404057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  sass.end
}

// -----

// SAY: remark: ffma-deftz [apply]: fires nowhere - no bytes changed
// CHECK: sass.FADD_0x221.FTZ
sass.func "none" attributes {sass.entries = array<i32: 1>, sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  sass.entry ^bb1
^bb1:
  %2 = sass.FADD_0x221.FTZ guard(%PT) %0, -%0 raw 0x000fe200000100008000000404057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  sass.end
}
