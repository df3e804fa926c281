module {
  sass.func "recur_k" attributes {pins = [[], [], [], ["B6"], [], [], ["R1", "R2", "R16", "P0", "B6"], []], sm = "sm_87", tail = ["0x000fc0000383fffffffffff000007947", "0x000fc000000000000000000000007918 x15"]} {
    %RZ = sass.rz
    %PT = sass.pt
    %UPT = sass.upt
    %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R1"}
    %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R2"}
    %2 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
    %3 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R16"}
    %4 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R17"}
    %5 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R20"}
    %6 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R21"}
    %7 = builtin.unrealized_conversion_cast to !sass.ureg {sass.pin = "UR2"}
    %8 = builtin.unrealized_conversion_cast to !sass.barrier {sass.pin = "B6"}
    sass.entry ^bb1, ^bb4
  ^bb1:  // pred: ^bb0
    %9 = sass.ISETP_0xc0c.NE.U32.AND guard(%PT) %RZ, %7, %PT raw 0x000fda000bf0507000000002ff007c0c : (!sass.reg, !sass.ureg, !sass.pred) -> (!sass.pred)
    sass.BRA_0x947 guard(%9) %PT ^bb3(%8 : !sass.barrier), ^bb2 raw 0x000fea00038000000000012000000947 : (!sass.pred) -> ()
  ^bb2:  // pred: ^bb1
    %10 = sass.BMOV_0x956.32 guard(%PT) 0xffffffff raw 0x000fe80000000000ffffffff00007956 : (!sass.imm) -> (!sass.barrier)
    %11:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %10 raw 0x000fe800001000000000000000017f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %12:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %11#0 raw 0x000fe800001000000000000001027f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %13:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %12#0 raw 0x000fe800001000000000000002037f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %14:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %13#0 raw 0x000fe800001000000000000003047f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %15:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %14#0 raw 0x000fe800001000000000000004057f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %16:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %15#0 raw 0x000fe800001000000000000005067f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %17:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %16#0 raw 0x000fe800001000000000000006077f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %18:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %17#0 raw 0x000fe800001000000000000007087f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %19:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %18#0 raw 0x000fe800001000000000000008097f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %20:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %19#0 raw 0x000fe8000010000000000000090a7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %21:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %20#0 raw 0x000fe80000100000000000000a0b7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %22:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %21#0 raw 0x000fe80000100000000000000b0c7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %23:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %22#0 raw 0x000fe80000100000000000000c0d7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %24:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %23#0 raw 0x000fe80000100000000000000d0e7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %25:2 = sass.BMOV_0xf55.32.CLEAR guard(%PT) %24#0 raw 0x000fe80000100000000000000e0f7f55 : (!sass.barrier) -> (!sass.barrier, !sass.barrier)
    %26 = sass.BMOV_0x956.32 guard(%PT) 0x00000000 raw 0x000fe80000000000000000000f007956 : (!sass.imm) -> (!sass.barrier)
    %27 = sass.UMOV_0x882 guard(%UPT) 0x00000001 raw 0x000fe400000000000000000100027882 : (!sass.imm) -> (!sass.ureg)
    sass.fall ^bb3(%17#1 : !sass.barrier)
  ^bb3(%28: !sass.barrier):  // 2 preds: ^bb1, ^bb2
    %29 = sass.IMAD_0x624.U32 guard(%PT) %RZ, %RZ, c[0x0][0x28] raw 0x000fe400078e00ff00000a00ff017624 : (!sass.reg, !sass.reg) -> (!sass.reg)
    %30 = sass.S2R_0x919 guard(%PT) SR_TID.X raw 0x000e2200000021000000000000027919 : () -> (!sass.reg)
    %31 = sass.MOV_0x802 guard(%PT) 0x000001b0, 0xf raw 0x000fe20000000f00000001b000147802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    %32 = sass.IMAD_0x424.U32 guard(%PT) %RZ, %RZ, 0x0 raw 0x000fe200078e00ff00000000ff157424 : (!sass.reg, !sass.reg, !sass.imm) -> (!sass.reg)
    %33:2 = sass.ULDC_0xab9.64 guard(%UPT) c[0x0][0x118] raw 0x000fe20000000a000000460000247ab9 : () -> (!sass.ureg, !sass.ureg)
    %34 = sass.LOP3_0x812.LUT guard(%PT) %30, 0x0000000f, %RZ, 0xc0, not %PT raw 0x001fcc00078ec0ff0000000f02047812 : (!sass.reg, !sass.imm, !sass.reg, !sass.imm, !sass.pred) -> (!sass.reg)
    %35:9 = sass.CALL_0x944.REL.NOINC guard(%PT) %PT, label(0) reads(%29, %30, %34, %3, %4, %31, %32, %28 : !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.barrier) writes("R1", "R2", "R4", "R16", "R17", "R20", "R21", "P0", "B6") raw 0x000fea0003c000000000006000007944 : (!sass.pred) -> (!sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.pred, !sass.barrier)
    %36 = sass.S2R_0x919 guard(%PT) SR_CTAID.X raw 0x000e2200000025000000000000037919 : () -> (!sass.reg)
    %37 = sass.IMAD_0x424.U32 guard(%PT) %RZ, %RZ, 0x4 raw 0x000fe400078e00ff00000004ff057424 : (!sass.reg, !sass.reg, !sass.imm) -> (!sass.reg)
    %38 = sass.IMAD_0xa24 guard(%PT) %36, c[0x0][0x0], %35#1 raw 0x001fc800078e02020000000003027a24 : (!sass.reg, !sass.reg) -> (!sass.reg)
    %39:2 = sass.IMAD_0x625.WIDE.U32 guard(%PT) %38, %37, c[0x0][0x160] raw 0x000fca00078e00050000580002027625 : (!sass.reg, !sass.reg) -> (!sass.reg, !sass.reg)
    sass.STG_0x986.E guard(%PT) [%39#0, %39#1<"64"> + 0x0], %35#2 desc(%33#0, %33#1) raw 0x000fe2000c1019240000000402007986 : (!sass.reg, !sass.reg, !sass.reg, !sass.ureg, !sass.ureg) -> ()
    sass.EXIT_0x94d guard(%PT) %PT raw 0x000fea0003800000000000000000794d : (!sass.pred) -> ()
  ^bb4:  // pred: ^bb0
    sass.label 0
    %40 = sass.IADD3_0x810 guard(%PT) %0, -0x18, %RZ raw 0x000fca0007ffe0ffffffffe801017810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
    sass.STL_0x387 guard(%PT) [%40 + 0x10], %6 raw 0x000fe800001008000000101501007387 : (!sass.reg, !sass.reg) -> ()
    sass.STL_0x387 guard(%PT) [%40 + 0xc], %5 raw 0x000fe8000010080000000c1401007387 : (!sass.reg, !sass.reg) -> ()
    sass.STL_0x387 guard(%PT) [%40 + 0x8], %4 raw 0x000fe800001008000000081101007387 : (!sass.reg, !sass.reg) -> ()
    sass.STL_0x387 guard(%PT) [%40 + 0x4], %3 raw 0x0001e800001008000000041001007387 : (!sass.reg, !sass.reg) -> ()
    sass.STL_0x387 guard(%PT) [%40 + 0x0], %1 raw 0x0003e200001008000000000201007387 : (!sass.reg, !sass.reg) -> ()
    %41:2 = sass.BMOV_0x355.32.CLEAR guard(%PT) %8 raw 0x001e2200001000000000000006107355 : (!sass.barrier) -> (!sass.reg, !sass.barrier)
    %42 = sass.IMAD_0x224.U32 guard(%PT) %RZ, %RZ, %2 raw 0x002fca00078e0004000000ffff027224 : (!sass.reg, !sass.reg, !sass.reg) -> (!sass.reg)
    %43 = sass.ISETP_0x80c.GE.AND guard(%PT) %42, 0x2, %PT raw 0x000fe20003f06270000000020200780c : (!sass.reg, !sass.imm, !sass.pred) -> (!sass.pred)
    %44 = sass.BSSY_0x945 guard(%PT) %PT, label(1) raw 0x000fd80003800000000000c000067945 : (!sass.pred) -> (!sass.barrier)
    sass.BRA_0x947 guard(not %43) %PT ^bb6(%40, %42, %41#0, %43, %44 : !sass.reg, !sass.reg, !sass.reg, !sass.pred, !sass.barrier), ^bb5 raw 0x000fea0003800000000000a000008947 : (!sass.pred) -> ()
  ^bb5:  // pred: ^bb4
    %45 = sass.HFMA2_0x435.MMA guard(%PT) -%RZ, %RZ, 0x0000, 0x0000 raw 0x000fe200000001ff00000000ff157435 : (!sass.reg, !sass.reg, !sass.imm, !sass.imm) -> (!sass.reg)
    %46 = sass.IADD3_0x810 guard(%PT) %42, -0x1, %RZ raw 0x000fe40007ffe0ffffffffff02047810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
    %47 = sass.MOV_0x802 guard(%PT) 0x00000300, 0xf raw 0x000fc80000000f000000030000147802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    %48:9 = sass.CALL_0x944.REL.NOINC guard(%PT) %PT, label(0) reads(%40, %42, %46, %41#0, %4, %47, %45, %44 : !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.barrier) writes("R1", "R2", "R4", "R16", "R17", "R20", "R21", "P0", "B6") raw 0x001fea0003c3ffffffffff1000007944 : (!sass.pred) -> (!sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.pred, !sass.barrier)
    %49 = sass.IMAD_0x224.U32 guard(%PT) %RZ, %RZ, %48#2 raw 0x000fe200078e0004000000ffff117224 : (!sass.reg, !sass.reg, !sass.reg) -> (!sass.reg)
    %50 = sass.IADD3_0x810 guard(%PT) %48#1, -0x2, %RZ raw 0x000fe20007ffe0fffffffffe02047810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
    %51 = sass.IMAD_0x424.U32 guard(%PT) %RZ, %RZ, 0x0 raw 0x000fe200078e00ff00000000ff157424 : (!sass.reg, !sass.reg, !sass.imm) -> (!sass.reg)
    %52 = sass.MOV_0x802 guard(%PT) 0x00000350, 0xf raw 0x000fc80000000f000000035000147802 : (!sass.imm, !sass.imm) -> (!sass.reg)
    %53:9 = sass.CALL_0x944.REL.NOINC guard(%PT) %PT, label(0) reads(%48#0, %48#1, %50, %48#3, %49, %52, %51, %48#8 : !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.barrier) writes("R1", "R2", "R4", "R16", "R17", "R20", "R21", "P0", "B6") raw 0x000fea0003c3fffffffffec000007944 : (!sass.pred) -> (!sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.pred, !sass.barrier)
    %54 = sass.IADD3_0x210 guard(%PT) %53#4, %53#2, %RZ raw 0x000fe40007ffe0ff0000000411027210 : (!sass.reg, !sass.reg, !sass.reg) -> (!sass.reg)
    sass.fall ^bb6(%53#0, %54, %53#3, %53#7, %53#8 : !sass.reg, !sass.reg, !sass.reg, !sass.pred, !sass.barrier)
  ^bb6(%55: !sass.reg, %56: !sass.reg, %57: !sass.reg, %58: !sass.pred, %59: !sass.barrier):  // 2 preds: ^bb4, ^bb5
    sass.BSYNC_0x941 guard(%PT) %PT, %59 raw 0x000fea00038000000000000000067941 : (!sass.pred, !sass.barrier) -> ()
    sass.fall ^bb7
  ^bb7:  // pred: ^bb6
    sass.label 1
    %60 = sass.LDL_0x983 guard(%PT) [%55 + 0xc] raw 0x0002a2000010080000000c0001147983 : (!sass.reg) -> (!sass.reg)
    %61 = sass.BMOV_0x356.32 guard(%PT) %57 raw 0x0011e200000000000000001006007356 : (!sass.reg) -> (!sass.barrier)
    %62 = sass.IMAD_0x224.U32 guard(%PT) %RZ, %RZ, %56 raw 0x000fe400078e0002000000ffff047224 : (!sass.reg, !sass.reg, !sass.reg) -> (!sass.reg)
    %63 = sass.LDL_0x983 guard(%PT) [%55 + 0x10] raw 0x0002a800001008000000100001157983 : (!sass.reg) -> (!sass.reg)
    %64 = sass.LDL_0x983 guard(%PT) [%55 + 0x0] raw 0x0002a800001008000000000001027983 : (!sass.reg) -> (!sass.reg)
    %65 = sass.LDL_0x983 guard(%PT) [%55 + 0x4] raw 0x0012a800001008000000040001107983 : (!sass.reg) -> (!sass.reg)
    %66 = sass.LDL_0x983 guard(%PT) [%55 + 0x8] raw 0x0002a400001008000000080001117983 : (!sass.reg) -> (!sass.reg)
    %67 = sass.IADD3_0x810 guard(%PT) %55, 0x18, %RZ raw 0x002fe20007ffe0ff0000001801017810 : (!sass.reg, !sass.imm, !sass.reg) -> (!sass.reg)
    sass.RET_0x950.REL.NODEC guard(%PT) %PT, {%60, %63} -0x400 reads(%67, %64, %62, %65, %66, %60, %63, %58, %61 : !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.reg, !sass.pred, !sass.barrier) raw 0x004fec0003c3fffffffffc0014007950 : (!sass.pred, !sass.reg, !sass.reg) -> ()
  }
}
