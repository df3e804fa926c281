// RUN: sass-opt %s | FileCheck %s --strict-whitespace
// RUN: sass-opt %s | sass-opt | FileCheck %s --strict-whitespace
// RUN: sass-opt %s --mlir-print-op-generic | sass-opt | FileCheck %s --strict-whitespace
// RUN: sass-opt %s --emit-bytecode | sass-opt | FileCheck %s --strict-whitespace
// RUN: %mlir-opt %s | FileCheck %s --strict-whitespace

// CHECK: module {
// CHECK-NEXT:   sass.func "k" attributes {sm = "sm_87", tail = ["0x000fc0000383fffffffffff000007947", "0x00000fc0000000000000000000007918 x2"]} {
// CHECK-NEXT:     %PT = sass.pt
// CHECK-NEXT:     %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
// CHECK-NEXT:     %1 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
// CHECK-NEXT:     sass.entry ^bb1
// CHECK-NEXT:   ^bb1:  // pred: ^bb0
// CHECK-NEXT:     sass.label 0
// CHECK-NEXT:     %2 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
// CHECK-NEXT:     %3 = sass.MOV_0x802 guard(%1) 0x00000002, 0xf merge(%2) raw 0x000fe20000000f000000000200020802 : (!sass.imm, !sass.imm) -> (!sass.reg)
// CHECK-NEXT:     %4 = sass.FADD_0x221 guard(%PT) %0, -%3 raw 0x000fe200000000008000000204057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
// CHECK-NEXT:     sass.opaque raw 0x00000000000000000000000000000000
// CHECK-NEXT:     sass.fall ^bb2
// CHECK-NEXT:   ^bb2:  // pred: ^bb1
// CHECK-NEXT:     sass.end
// CHECK-NEXT:   }
module {
  sass.func "k" attributes {sm = "sm_87", tail = ["0x000fc0000383fffffffffff000007947", "0x00000fc0000000000000000000007918 x2"]} {
    %PT = sass.pt
    %r4 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
    %p0 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
    sass.entry ^code
  ^code:
    sass.label 0
    // White space and names are free.
    %a = sass.MOV_0x802   guard( %PT )  0x00000001 , 0xf
         raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    %b = sass.MOV_0x802 guard(%p0) 0x00000002, 0xf merge(%a) raw 0x000fe20000000f000000000200020802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    %c = sass.FADD_0x221 guard(%PT) %r4, - %b raw 0x000fe200000000008000000204057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
    sass.opaque raw 0x00000000000000000000000000000000
    sass.fall ^end
  ^end:
    sass.end
  }
}
