// Passes that know nothing of a configuration, on the functions that it names; in `report` they count and leave everything as it was.
// RUN: sass-opt %s --pass-pipeline='builtin.module(sass.func(sass-on-entry{entry=1 pipeline=canonicalize}))' | FileCheck %s --check-prefixes=CHECK,APPLY
// RUN: sass-opt %s --pass-pipeline='builtin.module(sass.func(sass-on-entry{entry=1 report=true pipeline=canonicalize{max-iterations=2}}))' | FileCheck %s --check-prefixes=CHECK,REPORT
// RUN: not sass-opt %s --pass-pipeline='builtin.module(sass.func(sass-on-entry{entry=1 pipeline=canonicalize{rounds=2}}))' 2>&1 | FileCheck %s --check-prefix=OPTION

// CHECK: sass.func "named" attributes {sass.changed_1 = 1 : i32,
// REPORT: sass.MOV
// APPLY-NOT: sass.MOV
// CHECK: sass.func "other" attributes {sm = "sm_87"}
// CHECK: sass.MOV
// OPTION: error: {{.*}}rounds
sass.func "named" attributes {sass.entries = array<i32: 0, 1>, sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  %1 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}
sass.func "other" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  %1 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}
