// One test for each rule of the verifier, in generic form, which the parser of instructions has not looked at.
// RUN: sass-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'sass.EXIT' op is outside a sass.func}}
"sass.EXIT"() <{inst = {sm = "sm_87", word = 0x000fea0003800000000000000000794d : i128}}> : () -> ()

// -----

// expected-error @below {{names the unknown target "sm_1"}}
"sass.func"() <{sm = "sm_1", sym_name = "k"}> ({
  sass.end
}) : () -> ()

// -----

// expected-error @below {{has no code}}
"sass.func"() <{sm = "sm_87", sym_name = "k"}> ({}) : () -> ()

// -----

// expected-error @below {{has an entry block with arguments}}
"sass.func"() <{sm = "sm_87", sym_name = "k"}> ({
^bb0(%0: !sass.reg):
  sass.end
}) : () -> ()

// -----

sass.func "k" attributes {sm = "sm_87"} {
  // expected-error @below {{stands for a register at entry and needs the attribute sass.pin}}
  %0 = builtin.unrealized_conversion_cast to !sass.reg
  sass.end
}

// -----

sass.func "word" attributes {sm = "sm_87"} {
  // expected-error @below {{has no instruction word}}
  "sass.NOP"() : () -> ()
  sass.end
}

// -----

sass.func "form" attributes {sm = "sm_87"} {
  // expected-error @below {{has a word that is no instruction of sm_87}}
  "sass.MOV"() <{inst = {sm = "sm_87", word = 0 : i128}}> : () -> ()
  sass.end
}

// -----

sass.func "opaque" attributes {sm = "sm_87"} {
  // expected-error @below {{cannot have operands or results}}
  %0 = "sass.opaque"() <{inst = {sm = "sm_87", word = 0 : i128}}> : () -> !sass.reg
  sass.end
}

// -----

sass.func "label" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @below {{names no place in the code and cannot have a label}}
  %0 = "sass.MOV"(%PT) <{inst = {label = 3 : i32, sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> !sass.reg
  sass.end
}

// -----

sass.func "operand_type" attributes {sm = "sm_87"} {
  %RZ = sass.rz
  // expected-error @below {{operand 0 is '!sass.reg', but its word says '!sass.pred'}}
  %0 = "sass.MOV"(%RZ) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.reg) -> !sass.reg
  sass.end
}

// -----

sass.func "result_type" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @below {{result 0 is '!sass.ureg', but its word says '!sass.reg'}}
  %0 = "sass.MOV"(%PT) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> !sass.ureg
  sass.end
}

// -----

sass.func "few" attributes {sm = "sm_87"} {
  // expected-error @below {{has 0 operands, but its word says 1}}
  %0 = "sass.MOV"() <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : () -> !sass.reg
  sass.end
}

// -----

sass.func "many" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @below {{has 2 operands, but its word says 1}}
  %0 = "sass.MOV"(%PT, %PT) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred, !sass.pred) -> !sass.reg
  sass.end
}

// -----

// What is written under a guard needs what was there before.
sass.func "merge" attributes {sm = "sm_87"} {
  %0 = builtin.unrealized_conversion_cast to !sass.pred {sass.pin = "P0"}
  // expected-error @below {{has 1 operands, but its word says 2}}
  %1 = "sass.MOV"(%0) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000200020802 : i128}}> : (!sass.pred) -> !sass.reg
  sass.end
}

// -----

sass.func "no_result" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @below {{has 0 results, but its word says 1}}
  "sass.MOV"(%PT) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> ()
  sass.end
}

// -----

sass.func "successors" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @below {{has 1 successors, but values for 0}}
  "sass.BRA"(%PT, %PT)[^bb2] <{inst = {label, sm = "sm_87", word = 0x000fea0003800000000000f000007947 : i128}}> : (!sass.pred, !sass.pred) -> ()
^bb2:
  sass.end
}

// -----

sass.func "values" attributes {sm = "sm_87"} {
  %PT = sass.pt
  %RZ = sass.rz
  sass.entry ^bb1
^bb1:
  // expected-error @below {{has 2 operands, expected 3}}
  "sass.BRA"(%PT, %PT)[^bb2] <{inst = {label, sm = "sm_87", word = 0x000fea0003800000000000f000007947 : i128}, succ = array<i32: 1>}> : (!sass.pred, !sass.pred) -> ()
^bb2(%0: !sass.reg):
  sass.end
}

// -----

sass.func "negative" attributes {sm = "sm_87"} {
  %PT = sass.pt
  sass.entry ^bb1
^bb1:
  // expected-error @below {{has a negative number of values for a successor}}
  "sass.BRA"(%PT, %PT)[^bb2] <{inst = {label, sm = "sm_87", word = 0x000fea0003800000000000f000007947 : i128}, succ = array<i32: -1>}> : (!sass.pred, !sass.pred) -> ()
^bb2:
  sass.end
}

// -----

sass.func "entry" attributes {sm = "sm_87"} {
  sass.entry ^bb1
^bb1:
  // expected-error @below {{is outside the entry block}}
  sass.entry ^bb2
^bb2:
  sass.end
}

// -----

sass.func "fall" attributes {sm = "sm_87"} {
  sass.entry ^bb1
^bb1:
  // expected-error @below {{needs one successor}}
  sass.fall ^bb2, ^bb3
^bb2:
  sass.end
^bb3:
  sass.end
}

// -----

sass.func "property" attributes {sm = "sm_87"} {
  // expected-error @below {{expected `inst = {sm = "sm_..", word = 0x... : i128}`}}
  "sass.NOP"() <{inst = {word = 0 : i128}}> : () -> ()
  sass.end
}

// -----

sass.func "property_target" attributes {sm = "sm_87"} {
  // expected-error @below {{unknown target 'sm_1'}}
  "sass.NOP"() <{inst = {sm = "sm_1", word = 0 : i128}}> : () -> ()
  sass.end
}

// -----

sass.func "pin_twice" attributes {sm = "sm_87"} {
  %0 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  // expected-error @below {{is the second one with sass.pin = "R4"}}
  %1 = builtin.unrealized_conversion_cast to !sass.reg {sass.pin = "R4"}
  sass.end
}

// -----

sass.func "other_target" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @below {{is an instruction of sm_90 in a function of sm_87}}
  %0 = "sass.MOV"(%PT) <{inst = {sm = "sm_90", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> !sass.reg
  sass.end
}

// -----

sass.func "other_mnemonic" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @below {{'sass.FADD' op has a word of MOV}}
  %0 = "sass.FADD"(%PT) <{inst = {sm = "sm_87", word = 0x000fe20000000f000000000100027802 : i128}}> : (!sass.pred) -> !sass.reg
  sass.end
}
