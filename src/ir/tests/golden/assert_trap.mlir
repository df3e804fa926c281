module {
  sass.func "assert_trap" attributes {sm = "sm_87", tail = ["0x000fc000000000000000000000007918 x10"]} {
    %RZ = sass.rz
    %PT = sass.pt
    %UPT = sass.upt
    %0 = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR2"}
    sass.entry ^bb1
  ^bb1:  // pred: ^bb0
    %1 = sass.ISETP_0xc0c.NE.U32.AND guard(%PT) %RZ, %0, %PT raw 0x000fda000bf0507000000002ff007c0c : (!sass.reg, !sass.ureg, !sass.pred) -> (!sass.pred)
    sass.BRA_0x947 guard(%1) %PT ^bb3, ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
  ^bb2:  // pred: ^bb1
    %2 = sass.BMOV_0x956.32 guard(%PT) 0xffffffff raw 0x000fe80000000000ffffffff00007956 : (!sass.imm) -> (!sass.barrier)
    %3:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %2 raw 0x000fe800001000000000000000017f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %4:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %3#0 raw 0x000fe800001000000000000001027f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %5:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %4#0 raw 0x000fe800001000000000000002037f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %6:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %5#0 raw 0x000fe800001000000000000003047f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %7:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %6#0 raw 0x000fe800001000000000000004057f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %8:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %7#0 raw 0x000fe800001000000000000005067f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %9:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %8#0 raw 0x000fe800001000000000000006077f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %10:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %9#0 raw 0x000fe800001000000000000007087f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %11:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %10#0 raw 0x000fe800001000000000000008097f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %12:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %11#0 raw 0x000fe8000010000000000000090a7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %13:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %12#0 raw 0x000fe80000100000000000000a0b7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %14:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %13#0 raw 0x000fe80000100000000000000b0c7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %15:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %14#0 raw 0x000fe80000100000000000000c0d7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %16:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %15#0 raw 0x000fe80000100000000000000d0e7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %17:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %16#0 raw 0x000fe80000100000000000000e0f7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %18 = sass.BMOV_0x956.32 guard(%PT) 0x00000000 raw 0x000fe80000000000000000000f007956 : (!sass.imm) -> (!sass.barrier)
    %19 = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100027882 : (!sass.imm) -> (!sass.ureg)
    sass.fall ^bb3
  ^bb3:  // 2 preds: ^bb1, ^bb2
    %20 = sass.IMAD_0x624.U32 guard(%PT) %RZ, %RZ, c[0x0][0x28] raw 0x000fe400078e00ff00000a00ff017624 : (!sass.reg, !sass.reg) -> (!sass.reg)
    %21 = sass.IMAD_0x624.U32 guard(%PT) %RZ, %RZ, c[0x0][0x168] raw 0x000fca00078e00ff00005a00ff027624 : (!sass.reg, !sass.reg) -> (!sass.reg)
    %22 = sass.ISETP_0x80c.NE.AND guard(%PT) %21, 0x7, %PT raw 0x000fda0003f05270000000070200780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
    sass.BRA_0x947 guard(not %22) %PT ^bb9, ^bb4 raw 0x000fea0003800000000000c000008947 : (!sass.pred) -> ()
  ^bb4:  // pred: ^bb3
    %23 = sass.ISETP_0x80c.NE.AND guard(%PT) %21, 0x8, %PT raw 0x000fe20003f05270000000080200780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
    %24:2 = sass.ULDC_0xab9.64 guard(%UPT) c[0x0][0x118] raw 0x000fd80000000a000000460000047ab9 : () -> (!sass.ureg, !sass.ureg)
    sass.BRA_0x947 guard(not %23) %PT ^bb7, ^bb5 raw 0x000fea00038000000000003000008947 : (!sass.pred) -> ()
  ^bb5:  // pred: ^bb4
    %25 = sass.ISETP_0x80c.NE.AND guard(%PT) %21, 0x9, %PT raw 0x000fda0003f05270000000090200780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
    sass.BRA_0x947 guard(%25) %PT ^bb8, ^bb6 raw 0x000fea00038000000000002000000947 : (!sass.pred) -> ()
  ^bb6:  // pred: ^bb5
    sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
  ^bb7:  // pred: ^bb4
    sass.BPT_0x95c.TRAP guard(%PT) 0x1 raw 0x000fea0000300000000000040000795c : (!sass.imm) -> ()
    sass.fall ^bb8
  ^bb8:  // 2 preds: ^bb5, ^bb7
    %26 = sass.HFMA2_0x435.MMA guard(%PT) -%RZ, %RZ, 0x0000, 0x0004 raw 0x000fe200000001ff00000004ff037435 : (!sass.reg, !sass.reg, !sass.imm, !sass.imm) -> (!sass.reg)
    %27 = sass.IMAD_0x424.U32 guard(%PT) %RZ, %RZ, 0x1 raw 0x000fd200078e00ff00000001ff057424 : (!sass.reg, !sass.reg, !sass.imm) -> (!sass.reg)
    %28:2 = sass.IMAD_0x625.WIDE guard(%PT) %21, %26, c[0x0][0x160] raw 0x000fca00078e02030000580002027625 : (!sass.reg, !sass.reg) -> (!sass.reg, !sass.reg)
    sass.STG_0x986.E guard(%PT) [%28#0, %28#1<"64"> + 0x0], %27 desc(%24#0, %24#1) raw 0x000fe2000c1019040000000502007986 : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
    sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
  ^bb9:  // pred: ^bb3
    sass.BPT_0x95c.TRAP guard(%PT) 0x1 raw 0x000fea0000300000000000040000795c : (!sass.imm) -> ()
    sass.fall ^bb10
  ^bb10:  // 2 preds: ^bb9, ^bb10
    sass.BRA_0x947 guard(%PT) %PT ^bb10 raw 0x000fc0000383fffffffffff000007947 : (!sass.pred) -> ()
  }
}
