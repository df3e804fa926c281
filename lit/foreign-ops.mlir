// A portable pass leaves a function with other dialects' ops alone and says so.
// RUN: sass-opt %s --sass-ffma-deftz --verify-diagnostics

sass.func "k" attributes {sm = "sm_87"} {
  %PT = sass.pt
  // expected-error @below {{is no part of a kernel: a function that is lowered holds sass ops only}}
  %c = arith.constant 1 : i32
  sass.entry ^bb1
^bb1:
  sass.end
}
