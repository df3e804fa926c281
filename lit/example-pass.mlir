// The example of dialect/README.md, as a plugin: x + x becomes x * 2, where neither is negated and both are the same.
// RUN: sass-opt %s --load-pass-plugin=%tools/SassAddToMul.so --pass-pipeline='builtin.module(sass.func(example-add-to-mul))' 2>%t | FileCheck %s && FileCheck %s --check-prefix=SAY < %t
// RUN: %mlir-opt %s --load-pass-plugin=%tools/SassAddToMul.so --pass-pipeline='builtin.module(sass.func(example-add-to-mul))' | FileCheck %s

// SAY: remark: was FADD_0x221.FTZ
// SAY-NOT: remark
// CHECK: sass.FMUL_0x820.FTZ guard(%PT) %0, 0x40000000 raw 0x000fe200004100004000000004057820
// CHECK-NEXT: sass.FADD_0x221 guard(%PT) %0, -%0
// CHECK-NEXT: sass.FADD_0x221 guard(%PT) %0, %2
sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  sass.entry ^bb1
^bb1:
  %1 = sass.FADD_0x221.FTZ guard(%PT) %0, %0 raw 0x140fe200000100000000000404057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %2 = sass.FADD_0x221 guard(%PT) %0, -%0 raw 0x000fe200000000008000000404067221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  %3 = sass.FADD_0x221 guard(%PT) %0, %2 raw 0x000fe200000000000000000604077221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  sass.end
}
