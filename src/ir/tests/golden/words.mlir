module {
  sass.func "words" attributes {sm = "sm_87", tail = ["0x000fc0000383fffffffffff000007947", "0x000fc000000000000000000000007918 x2"]} {
    %RZ = sass.rz
    %PT = sass.pt
    %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
    %1 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
    sass.entry ^bb1
  ^bb1:  // pred: ^bb0
    %2 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    %3 = sass.MOV_0x802 guard(%1) 0x00000002, 0xf merge(%2) raw 0x000fe20000000f000000000200020802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    %4 = sass.IADD3_0x210 guard(%PT) %3, %3, %RZ raw 0x000fe20007ffe0ff0000000202037210 : (!sass.reg, !sass.reg, !sass.reg) -> (!sass.reg)
    %5 = sass.FFMA_0x223.FTZ guard(%PT) %3, %4, %0 raw 0x000fe200000100040000000302047223 : (!sass.reg, !sass.reg, !sass.reg) -> (!sass.reg)
    sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
  }
  sass.func "words" attributes {sm = "sm_87"} {
    %PT = sass.pt
    %0 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
    sass.entry ^bb1, ^bb4
  ^bb1:  // pred: ^bb0
    sass.BRA_0x947 guard(%0) %PT ^bb3, ^bb2 raw 0x000fea00038000000000001000000947 : (!sass.pred) -> ()
  ^bb2:  // pred: ^bb1
    %1 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    sass.fall ^bb3
  ^bb3:  // 2 preds: ^bb1, ^bb2
    sass.opaque raw 0x00000000000000000000000000000000
    sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
  ^bb4:  // pred: ^bb0
    %2 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
  }
}
