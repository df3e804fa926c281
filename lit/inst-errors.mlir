// RUN: sass-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{unknown target "sm_1"}}
sass.func "target" attributes {sm = "sm_1"} {
  sass.end
}

// -----

sass.func "modifier" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  %r = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  // expected-error @+1 {{the instruction disagrees with its word, which is `FADD_0x221 guard(%_)%_,-%_`}}
  %0 = sass.FADD_0x221.FTZ guard(%PT) %r, -%r raw 0x000fe200000000008000000404057221 : (!sass.reg, !sass.reg) -> (!sass.reg)
  sass.end
}

// -----

sass.func "immediate" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{the instruction disagrees with its word}}
  %0 = sass.MOV_0x802 guard(%PT) 0x00000003, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}

// -----

sass.func "values" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{the types disagree with the instruction's word}}
  %0 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x000fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.ureg)
  sass.end
}

// -----

sass.func "no word" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{has no `raw 0x<32 digits>` and no `sched("...")`, and its text tells neither registers nor scheduling}}
  %0 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}

// -----

sass.func "pins" attributes {sm = "sm_87"} {
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  // expected-error @+1 {{is the second one with sass.pin = "R4"}}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  sass.end
}

// -----

sass.func "generic" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @+1 {{has a word of MOV}}
  %0 = "sass.FADD"(%PT) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> !sass.reg
  sass.end
}

// -----

sass.func "other_target" attributes {sm = "sm_80"} {
  %PT = sass.pt
  // expected-error @+1 {{is an instruction of sm_87 in a function of sm_80}}
  %0 = "sass.MOV"(%PT) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> !sass.reg
  sass.end
}

// -----

sass.func "results" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @+1 {{but its word says}}
  %0:2 = "sass.MOV"(%PT) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> (!sass.reg, !sass.reg)
  sass.end
}

// -----

// expected-error @+1 {{expected attributes {sm = "sm_.."}}}
sass.func "no_sm" {
  sass.end
}

// -----

sass.func "no_form" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{no form of MOV has the opcode 0x999 and these modifiers on sm_87}}
  %0 = sass.MOV_0x999 guard(%PT) 0x00000001, 0xf regs("R2") sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}

// -----

sass.func "no_registers" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{it writes 1 register, pairs and longer counted once, and `regs` lists 0 registers}}
  %0 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf sched("B------:R-:W-:-:S01") : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}

// -----

sass.func "no_scheduling" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{`now` is no scheduling column like B--2---:R0:W-:-:S04}}
  %0 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf regs("R2") sched("now") : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}

// -----

sass.func "other_pair" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %a = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  %b = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R6"}
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{cannot be put together: operand 2 is R6 and has to be R5}}
  %0:2 = sass.DADD_0x229 guard(%PT) {%a, %b}, {%a, %b} regs("R8") sched("B------:R-:W0:-:S01") : (!sass.reg, !sass.reg, !sass.reg, !sass.reg) -> (!sass.reg, !sass.reg)
  sass.end
}

// -----

sass.func "digits" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{expected `0x` and 32 hexadecimal digits}}
  %0 = sass.MOV_0x802 guard(%PT) 0x00000001, 0xf raw 0x0fe20000000f000000000100027802 : (!sass.imm, !sass.imm) -> (!sass.reg)
  sass.end
}

// -----

sass.func "no_place" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @+1 {{names no place to go to}}
  sass.BRA_0x947 guard(%PT) %PT sched("B------:R-:W-:-:S05") : (!sass.pred) -> ()
}

// -----

sass.func "leading_zero" attributes {sm = "sm_87"} {
  // expected-error @+1 {{sass.pin = "R04" names no register of its type}}
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R04"}
  sass.end
}

// -----

sass.func "other_type" attributes {sm = "sm_87"} {
  // expected-error @+1 {{sass.pin = "P0" names no register of its type}}
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "P0"}
  sass.end
}

// -----

sass.func "labels" attributes {sm = "sm_87"} {
  sass.entry ^bb1
^bb1:
  sass.label 0
  sass.fall ^bb2
^bb2:
  // expected-error @+1 {{is there twice}}
  sass.label 0
  sass.end
}
