// RUN: sass-opt %s --sass-retarget-param='from=0x160 to=0x168' 2>&1 | FileCheck %s
// RUN: not sass-opt %s --sass-retarget-param='from=0x160' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not sass-opt %s --sass-retarget-param='from=0x160 to=0x160' 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: sass-opt %s --sass-retarget-param='from=0x160 to=0x16a' 2>&1 | FileCheck %s --check-prefix=REFUSED

// CHECK: remark: retarget-param [apply]: 1 read moved from c[0x0][0x160] to c[0x0][0x168] (1 op rewritten)
// CHECK: remark: 0x168 is outside the kernel's declared parameters, 0x160 to 0x168
// CHECK: c[0x0][0x168] raw 0x000fcc00078e020500005a0004027625
// MISSING: error: sass-retarget-param: option `to`: expected a whole number from 0x0 to 0xffff
// SAME: error: sass-retarget-param: {{.*}}the same as `from`
// REFUSED: remark: retarget-param [apply]: refused - IMAD at 0x0000: to = 0x16a is not a multiple of 8, as this read needs
// REFUSED: c[0x0][0x160] raw 0x000fcc00078e02050000580004027625
sass.func "k" attributes {sass.params = array<i32: 352, 360>, sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R5"}
  sass.entry ^bb1
^bb1:
  %2:2 = sass.IMAD_0x625.WIDE guard(%PT) %0, %1, c[0x0][0x160] raw 0x000fcc00078e02050000580004027625 : (!sass.reg, !sass.reg) -> (!sass.reg, !sass.reg)
  sass.end
}
