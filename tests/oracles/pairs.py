#!/usr/bin/env python3
"""Kernels in which one instruction reads what another one wrote, for all pairs of a list:

    tests/oracles/pairs.py PTXAS OUT SM...      e.g. tests/oracles/pairs.py .oracles/tools/bin/ptxas .oracles/pairs sm_87 sm_120a

Makes OUT/sm_NN.cubin for every target. All operands are there when the pair begins, so the cycles that ptxas leaves between the two are those
that it takes them to need: `probe mine` reads them off, `probe check-hazards` holds them against the latency model.
"""

import itertools
import re
import subprocess
import sys
from pathlib import Path

# Name, least target, and PTX that makes d of a, b and c.
OPS = """
lop3     70 lop3.b32 {d},{a},{b},{c},0x1e;
iadd     70 add.u32 {d},{a},{b};
imad     70 mad.lo.u32 {d},{a},{b},{c};
imul     70 mul.lo.u32 {d},{a},{b};
imadhi   70 mad.hi.u32 {d},{a},{b},{c};
widelo   70 .reg .b64 %q; .reg .b32 %u; mad.wide.u32 %q,{a},{b},%rd5; mov.b64 {{{d},%u}},%q;
widehi   70 .reg .b64 %q; .reg .b32 %u; mad.wide.u32 %q,{a},{b},%rd5; mov.b64 {{%u,{d}}},%q;
widec    70 .reg .b64 %q,%w; .reg .b32 %u; mov.b64 %w,{{{a},{c}}}; mad.wide.u32 %q,{b},{c},%w; mov.b64 {{{d},%u}},%q;
add64    70 .reg .b64 %q,%w; .reg .b32 %u; mov.b64 %w,{{{a},{c}}}; mov.b64 %q,{{{b},{c}}}; add.u64 %q,%q,%w; mov.b64 {{%u,{d}}},%q;
shl      70 shl.b32 {d},{a},{b};
shf      70 shf.l.wrap.b32 {d},{a},{b},{c};
prmt     70 prmt.b32 {d},{a},{b},{c};
imin     70 min.s32 {d},{a},{b};
iset     70 set.gt.u32.s32 {d},{a},{b};
dp4a     70 dp4a.u32.u32 {d},{a},{b},{c};
bmsk     70 bmsk.clamp.b32 {d},{a},{b};
ffma     70 fma.rn.f32 {d},{a},{b},{c};
fadd     70 add.f32 {d},{a},{b};
fmul     70 mul.f32 {d},{a},{b};
fmax     70 max.f32 {d},{a},{b};
fset     70 set.gt.u32.f32 {d},{a},{b};
hadd2    70 add.f16x2 {d},{a},{b};
hsub2    70 sub.f16x2 {d},{a},{b};
hmul2    70 mul.f16x2 {d},{a},{b};
hfma2    70 fma.rn.f16x2 {d},{a},{b},{c};
hset2    70 set.gt.f16x2.f16x2 {d},{a},{b};
hset2e   70 set.eq.f16x2.f16x2 {d},{a},{b};
hset2l   70 set.lt.f16x2.f16x2 {d},{a},{b};
hmin2    80 min.f16x2 {d},{a},{b};
hmax2n   80 max.NaN.f16x2 {d},{a},{b};
hmax2    80 max.f16x2 {d},{a},{b};
bfma2    80 fma.rn.bf16x2 {d},{a},{b},{c};
bmax2    80 max.bf16x2 {d},{a},{b};
f2fp     80 .reg .f32 %f,%g; mov.b32 %f,{a}; mov.b32 %g,{b}; cvt.rn.f16x2.f32 {d},%f,%g;
isel     70 .reg .pred %k; setp.gt.s32 %k,{a},{b}; selp.b32 {d},{b},{c},%k;
fsel     70 .reg .pred %k; setp.gt.f32 %k,{a},{b}; selp.b32 {d},{b},{c},%k;
hsel     70 .reg .pred %k,%l; setp.gt.f16x2 %k|%l,{a},{b}; selp.b32 {d},{b},{c},%k;
iguard   70 .reg .pred %k; setp.gt.s32 %k,{a},{b}; mov.b32 {d},{a}; @%k mad.lo.u32 {d},{b},{c},{c};
hguard   70 .reg .pred %k,%l; setp.gt.f16x2 %k|%l,{a},{b}; mov.b32 {d},{a}; @%k fma.rn.f16x2 {d},{b},{c},{c};
iandi    70 .reg .pred %k,%l; setp.gt.s32 %k,{a},{b}; setp.lt.and.s32 %l,{b},{c},%k; selp.b32 {d},{b},{c},%l;
iandh    70 .reg .pred %k,%l,%m; setp.gt.s32 %k,{a},{b}; setp.lt.and.f16x2 %l|%m,{b},{c},%k; selp.b32 {d},{b},{c},%l;
handh    70 .reg .pred %k,%l,%m; setp.gt.f16x2 %k|%m,{a},{b}; setp.lt.and.f16x2 %l|%m,{b},{c},%k; selp.b32 {d},{b},{c},%l;
fandh    70 .reg .pred %k,%l,%m; setp.gt.f32 %k,{a},{b}; setp.lt.and.f16x2 %l|%m,{b},{c},%k; selp.b32 {d},{b},{c},%l;
handi    70 .reg .pred %k,%l; setp.gt.f16x2 %k|%l,{a},{b}; setp.lt.and.s32 %l,{b},{c},%k; selp.b32 {d},{b},{c},%l;
vote     70 .reg .pred %k; setp.gt.s32 %k,{a},{b}; vote.sync.ballot.b32 {d},%k,-1;
hvote    70 .reg .pred %k,%l; setp.gt.f16x2 %k|%l,{a},{b}; vote.sync.ballot.b32 {d},%l,-1;
popc     70 popc.b32 {d},{a};
mufu     70 rcp.approx.ftz.f32 {d},{a};
i2f      70 cvt.rn.f32.s32 {d},{a};
f2i      70 cvt.rzi.s32.f32 {d},{a};
shfl     70 shfl.sync.idx.b32 {d},{a},{b},31,-1;
dadd     70 .reg .b64 %q,%w; .reg .b32 %u; mov.b64 %w,{{{a},{c}}}; mov.b64 %q,{{{b},{c}}}; add.f64 %q,%q,%w; mov.b64 {{%u,{d}}},%q;
lds      70 ld.shared.b32 {d},[{a}];
sts      70 st.shared.b32 [{a}],{b}; mov.b32 {d},{c};
ldg      70 .reg .b64 %q; mov.b64 %q,{{{a},{b}}}; ld.global.b32 {d},[%q];
mma      80 mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {{{d},%r30}},{{{a},{b}}},{{{c}}},{{{a},{c}}};
"""
# Consumers whose third operand is one of its own.
THIRD = {"ffma", "imad", "hfma2", "lop3", "prmt", "bfma2", "dp4a", "mma", "widec"}

KERNEL = """.visible .entry {name}(.param .u64 p) {{
.reg .b64 %rd<9>; .reg .b32 %r<40>;
ld.param.u64 %rd1,[p]; cvta.to.global.u64 %rd1,%rd1;
ld.global.v4.b32 {{%r1,%r2,%r3,%r9}},[%rd1]; ld.global.u64 %rd5,[%rd1+16]; ld.global.v4.b32 {{%r11,%r12,%r13,%r14}},[%rd1+32];
bar.sync 0;
{{ {first} }}
{{ {second} }}
st.global.b32 [%rd1],%r5; ret; }}
"""


def source(sm: str) -> str:
    number = int(re.sub(r"\D", "", sm))
    rows = [line.split(None, 2) for line in OPS.strip().splitlines()]
    ops = {name: text for name, least, text in rows if int(least) <= number}
    text = [f".version 9.0\n.target {sm}\n.address_size 64\n"]
    for a, b in itertools.product(ops, ops):
        first = ops[a].format(d="%r4", a="%r1", b="%r2", c="%r3")
        operands = [("", "%r4", "%r11")] + ([("_c", "%r12", "%r4")] if b in THIRD else [])
        for end, x, z in operands:
            second = ops[b].format(d="%r5", a=x, b="%r9", c=z)
            text.append(KERNEL.format(name=f"{a}_{b}{end}", first=first, second=second))
    return "".join(text)


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    ptxas, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for sm in sys.argv[3:]:
        ptx, cubin = out / f"{sm}.ptx", out / f"{sm}.cubin"
        ptx.write_text(source(sm))
        try:
            subprocess.run([ptxas, "-O2", f"-arch={sm}", ptx, "-o", cubin], check=True)
        except (OSError, subprocess.CalledProcessError) as e:
            sys.exit(f"pairs.py: {sm}: {e}")
        finally:
            ptx.unlink()


if __name__ == "__main__":
    main()
