#!/usr/bin/env python3
"""Kernels that show how long matrix products and what works on tensor memory take: `probe mine` reads the least distances off what ptxas makes of them.

    tests/oracles/latencies.py TARGET OUT [PTXAS]

Each kernel is a chain of one kind of product, and whatever reads its result or overwrites its operands comes as soon as ptxas lets it.
What the target does not have is left out. Of each chain there are several kernels: some are for mining, some for checking (`is_mined`).
"""
import pathlib
import subprocess
import sys

KERNELS = 8
LINKS = 10
HEAD = """.version {version}
.target {target}
.address_size 64
"""

# PTX before the operands, type of the result, registers of D, A, B, C, and what stands behind them.
PRODUCTS = {
    "h884": ("m8n8k4.row.col.f32.f16.f16.f32", "f32", 8, 2, 2, 8, ""),
    "h1688": ("m16n8k8.row.col.f32.f16.f16.f32", "f32", 4, 2, 1, 4, ""),
    "h1688h": ("m16n8k8.row.col.f16.f16.f16.f16", "f16", 2, 2, 1, 2, ""),
    "h1688b": ("m16n8k8.row.col.f32.bf16.bf16.f32", "f32", 4, 2, 1, 4, ""),
    "h16816": ("m16n8k16.row.col.f32.f16.f16.f32", "f32", 4, 4, 2, 4, ""),
    "h16816h": ("m16n8k16.row.col.f16.f16.f16.f16", "f16", 2, 4, 2, 2, ""),
    "h16816b": ("m16n8k16.row.col.f32.bf16.bf16.f32", "f32", 4, 4, 2, 4, ""),
    "h1684t": ("m16n8k4.row.col.f32.tf32.tf32.f32", "f32", 4, 2, 1, 4, ""),
    "h1688t": ("m16n8k8.row.col.f32.tf32.tf32.f32", "f32", 4, 4, 2, 4, ""),
    "hs16816": ("sp m16n8k16.row.col.f32.f16.f16.f32", "f32", 4, 2, 2, 4, ", {e}, 0x0"),
    "hs16816h": ("sp m16n8k16.row.col.f16.f16.f16.f16", "f16", 2, 2, 2, 2, ", {e}, 0x0"),
    "hs16832": ("sp m16n8k32.row.col.f32.f16.f16.f32", "f32", 4, 4, 4, 4, ", {e}, 0x0"),
    "hs16832h": ("sp m16n8k32.row.col.f16.f16.f16.f16", "f16", 2, 4, 4, 2, ", {e}, 0x0"),
    "hs1688t": ("sp m16n8k8.row.col.f32.tf32.tf32.f32", "f32", 4, 2, 2, 4, ", {e}, 0x0"),
    "hs16816t": ("sp m16n8k16.row.col.f32.tf32.tf32.f32", "f32", 4, 4, 4, 4, ", {e}, 0x0"),
    "i8816": ("m8n8k16.row.col.s32.s8.s8.s32", "s32", 2, 1, 1, 2, ""),
    "i16816": ("m16n8k16.row.col.s32.s8.s8.s32", "s32", 4, 2, 1, 4, ""),
    "i16832": ("m16n8k32.row.col.s32.s8.s8.s32", "s32", 4, 4, 2, 4, ""),
    "i8832": ("m8n8k32.row.col.s32.s4.s4.s32", "s32", 2, 1, 1, 2, ""),
    "i16832q": ("m16n8k32.row.col.s32.s4.s4.s32", "s32", 4, 2, 1, 4, ""),
    "i16864q": ("m16n8k64.row.col.s32.s4.s4.s32", "s32", 4, 4, 2, 4, ""),
    "is16832": ("sp m16n8k32.row.col.s32.s8.s8.s32", "s32", 4, 2, 2, 4, ", {e}, 0x0"),
    "is16864": ("sp m16n8k64.row.col.s32.s8.s8.s32", "s32", 4, 4, 4, 4, ", {e}, 0x0"),
    "is16864q": ("sp m16n8k64.row.col.s32.s4.s4.s32", "s32", 4, 2, 2, 4, ", {e}, 0x0"),
    "is168128q": ("sp m16n8k128.row.col.s32.s4.s4.s32", "s32", 4, 4, 4, 4, ", {e}, 0x0"),
    "b88128": ("m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "s32", 2, 1, 1, 2, ""),
    "b168128": ("m16n8k128.row.col.s32.b1.b1.s32.xor.popc", "s32", 4, 2, 1, 4, ""),
    "b168256": ("m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "s32", 4, 4, 2, 4, ""),
    "q16816": ("m16n8k16.row.col.f32.e4m3.e4m3.f32", "f32", 4, 2, 1, 4, ""),
    "q16816h": ("m16n8k16.row.col.f16.e4m3.e4m3.f16", "f16", 2, 2, 1, 2, ""),
    "q16832": ("m16n8k32.row.col.f32.e4m3.e4m3.f32", "f32", 4, 4, 2, 4, ""),
    "q16832h": ("m16n8k32.row.col.f16.e4m3.e4m3.f16", "f16", 2, 4, 2, 2, ""),
    "q16832k": ("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "f32", 4, 4, 2, 4, ""),
    "q16832kh": ("m16n8k32.row.col.kind::f8f6f4.f16.e2m1.e3m2.f16", "f16", 2, 4, 2, 2, ""),
    "qs16864": ("sp::ordered_metadata m16n8k64.row.col.f32.e4m3.e4m3.f32", "f32", 4, 4, 4, 4, ", {e}, 0x0"),
    "qs16864h": ("sp::ordered_metadata m16n8k64.row.col.f16.e4m3.e4m3.f16", "f16", 2, 4, 4, 2, ", {e}, 0x0"),
    "qx16832": (
        "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", "f32", 4, 4, 2, 4, ", {{{e}}}, {{0, 0}}, {{{e}}}, {{0, 0}}"),
    "qxs16864": (
        "sp::ordered_metadata m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0", "f32", 4, 4, 4, 4,
        ", {e}, 0x0, {{{e}}}, {{0, 0}}, {{{e}}}, {{0, 0}}"),
    "o16864": (
        "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "f32", 4, 4, 2, 4, ", {{{e}}}, {{0, 0}}, {{{e}}}, {{0, 0}}"),
    "os168128": (
        "sp::ordered_metadata m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "f32", 4, 4, 4, 4,
        ", {e}, 0x0, {{{e}}}, {{0, 0}}, {{{e}}}, {{0, 0}}"),
}

# What gives a whole warp one number, from {x}.
VOTES = {
    "redux": "redux.sync.max.s32 r0, {x}, 0xffffffff;",
    "reduxu": "redux.sync.min.u32 r0, {x}, 0xffffffff;",
    "reduxf": "mov.b32 f0, {x}; redux.sync.max.f32 f1, f0, 0xffffffff; mov.b32 r0, f1;",
    "reduxadd": "redux.sync.add.s32 r0, {x}, 0xffffffff;",
    "elect": "elect.sync r0|q, {x};",
    "electp": "elect.sync _|q, {x}; selp.u32 r0, 1, {x}, q;",
}

# What comes behind each product. {d} is one of its results and {a} one of its operands, as registers; {f} and {g} the same as
# floating point; {x} is a sum that is kept; {at} and {in} are addresses in global and shared memory.
READERS = {
    "alu": "xor.b32 {x}, {x}, {d};",
    "shift": "shf.l.wrap.b32 {x}, {d}, {x}, 5;",
    "fma": "mad.lo.u32 {x}, {d}, {x}, {x};",
    "half": "fma.rn.f16x2 {x}, {d}, {x}, {x};",
    "lsu": "st.global.u32 [{at}+{n}], {d};",
    "lds": "st.shared.u32 [{in}+{n}], {d};",
    "xu": "popc.b32 {x}, {d};",
    "compare": "setp.lt.s32 p, {d}, {x}; @p add.u32 {x}, {x}, 1;",
    "a": "mov.b32 {a}, {d};",
    "chain": "",
}
UNIFORM = {
    "udp": "shl.b32 r1, {d}, 3; add.u32 r1, r1, {n}; xor.b32 {x}, {x}, r1;",
    "uread": "ld.shared.u32 {x}, [{d}];",
    "uconst": "ld.const.u32 {x}, [{d}];",
    "ubranch": "setp.ne.s32 p, {d}, 7; @p bra L{n}; add.u32 {x}, {x}, 1; L{n}: ",
    "again": "mov.u32 {x}, {d};",
}
WRITERS = {
    "walu": "xor.b32 {a}, {x}, {n};",
    "wfma": "mad.lo.u32 {a}, {x}, {y}, {x};",
    "whalf": "fma.rn.f16x2 {a}, {x}, {y}, {x};",
    "wlds": "ld.shared.u32 {a}, [{in}+{n}];",
    "wlsu": "ld.global.u32 {a}, [{at}+{n}];",
    "wload": "ld.volatile.shared.v4.u32 {{a0, a1, a2, a3}}, [{in}+{n}];",
    "wdc": "ld.const.u32 {a}, [{k}+{n}];",
}

# What makes the uniform address of a constant, {k}, from {k} and {y}, which are the same for all threads; {x} is not.
ADDRESSES = {
    "add": "add.u32 {k}, {y}, {n};",
    "shl": "shl.b32 {k}, {y}, 3;",
    "lop": "and.b32 {k}, {y}, 252;",
    "mad": "mad.lo.u32 {k}, {y}, {k}, 4;",
    "chain": "add.u32 {k}, {k}, 4; and.b32 {k}, {k}, 252;",
    "select": "setp.ne.u32 p, {y}, {n}; selp.u32 {k}, 4, {y}, p;",
    "move": "mov.u32 {k}, {n};",
    "vote": "redux.sync.and.b32 {k}, {x}, 0xffffffff;",
    "across": "shfl.sync.idx.b32 {k}, {x}, 0, 31, 0xffffffff;",
    "chained": "and.b32 {k}, {d}, 252;",
}
CONSTANTS = {
    "one": "ld.const.u32 {d}, [{k}+{n}]; xor.b32 {y}, {y}, {d};",
    "two": "ld.const.v2.u32 {{{d}, {k}}}, [{k}+{n}]; add.u32 {y}, {y}, {d};",
    "over": "ld.const.u32 {d}, [{k}+{n}]; add.u32 {k}, {k}, {d}; xor.b32 {y}, {y}, {k};",
    "branch": "ld.const.u32 {d}, [{k}+{n}]; setp.ne.s32 p, {d}, 7; @p bra L{n}; add.u32 {y}, {y}, 1; L{n}: ",
}


# Products of warpgroups: PTX before the operands, type of the result, registers of D and of A, and what stands behind the scale of D.
GROUPS = {
    "wh": ("m64n16k16.f32.f16.f16", "f32", 8, 4, ", 1, 1, 0, 1", ", 1, 1, 1"),
    "whh": ("m64n16k16.f16.f16.f16", "b32", 4, 4, ", 1, 1, 0, 0", ", 1, 1, 0"),
    "wb": ("m64n64k16.f32.bf16.bf16", "f32", 32, 4, ", 1, 1, 0, 0", ", 1, 1, 0"),
    "wt": ("m64n8k8.f32.tf32.tf32", "f32", 4, 4, ", 1, 1", ", 1, 1"),
    "wq": ("m64n16k32.f32.e4m3.e4m3", "f32", 8, 4, ", 1, 1", ", 1, 1"),
    "wi": ("m64n16k32.s32.s8.s8", "b32", 8, 4, "", ""),
    "wx": ("m64n8k256.s32.b1.b1.and.popc", "b32", 4, 4, "", ""),
}
# What makes one register of A, a sum or a descriptor before a product, from {x}.
BEFORE = {
    "alu": "xor.b32 {a}, {x}, {n}; xor.b32 x, x, {a};",
    "shift": "shf.l.wrap.b32 {a}, {x}, {x}, 5; xor.b32 x, x, {a};",
    "fma": "mad.lo.u32 {a}, {x}, {x}, {x}; xor.b32 x, x, {a};",
    "half": "fma.rn.f16x2 {a}, {x}, {x}, {x}; xor.b32 x, x, {a};",
    "pack": "mov.b32 f, x; cvt.rn.f16x2.f32 {a}, f, f; xor.b32 x, x, {a};",
    "lds": "ld.shared.u32 {a}, [{in}+{n}];",
    "lsu": "ld.global.u32 {a}, [{at}+{n}];",
    "xu": "mov.b32 f, {x}; ex2.approx.ftz.f32 f, f; mov.b32 {a}, f;",
    "dc": "ld.const.u32 {a}, [fixed+{n}];",
    "step": "add.u64 u, u, 2;",
    "wide": "add.u64 u, u, v;",
    "fixed": "mov.u64 u, {n};",
    "param": "ld.param.u64 u, [p1+{n}];",
    "computed": "cvt.u64.u32 u, x; xor.b32 x, x, {n};",
    "none": "",
}
# What stands behind it, before and behind the wait.
BEHIND = {
    "wait": ("", "0", ""),
    "late": ("", "1", ""),
    "read": ("", "0", "xor.b32 x, x, {d};"),
    "sum": ("", "0", "mad.lo.u32 x, {d}, x, x;"),
    "store": ("", "0", "st.global.u32 [at+{n}], {d};"),
    "over": ("", "0", "mov.b32 {a}, {n};"),
    "busy": ("xor.b32 x, x, {n}; mad.lo.u32 x, x, x, x;", "0", ""),
}
# What uses tensor memory, with {r} a list of eight registers made before.
TENSOR = {
    "st": "tcgen05.st.sync.aligned.32x32b.x8.b32 [t+{n}], {r};",
    "rmw": "tcgen05.ld.sync.aligned.32x32b.x8.b32 {r}, [t]; tcgen05.wait::ld.sync.aligned; add.u32 {a}, {a}, x; "
    "tcgen05.st.sync.aligned.32x32b.x8.b32 [t], {r}; tcgen05.wait::st.sync.aligned;",
    "stw": "tcgen05.st.sync.aligned.32x32b.x8.b32 [t+{n}], {r}; tcgen05.wait::st.sync.aligned;",
    "ld": "tcgen05.ld.sync.aligned.32x32b.x8.b32 {r}, [t+{n}]; tcgen05.wait::ld.sync.aligned; xor.b32 x, x, {a};",
    "ldld": "tcgen05.ld.sync.aligned.32x32b.x8.b32 {r}, [t]; tcgen05.ld.sync.aligned.32x32b.x4.b32 {{s0, s1, s2, s3}}, [t+8]; "
    "tcgen05.wait::ld.sync.aligned; xor.b32 x, x, {a}; add.u32 x, x, s3;",
    "mma": "tcgen05.mma.cta_group::1.kind::f16 [t], u, v, i, p; xor.b32 x, x, {a};",
    "mmai": "tcgen05.mma.cta_group::1.kind::f8f6f4 [t], u, v, i, p; tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [s];",
    "cp": "tcgen05.cp.cta_group::1.128x256b [t], u;",
    "shiftd": "tcgen05.shift.cta_group::1.down [t]; add.u32 t, t, 32;",
    "alloc": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32; ld.shared.u32 t, [s];",
    "free": "tcgen05.dealloc.cta_group::1.sync.aligned.b32 t, 32;",
}


def warpgroup(name, group, before, behind, turn):
    shape, kind, nd, na, tail, tail_a = group
    mma = "wgmma.mma_async.sync.aligned." + shape
    listed = lambda letter, n: "{" + ", ".join(f"{letter}{i}" for i in range(n)) + "}"
    lines = [
        f".visible .entry {name}(.param .u64 p0, .param .align 8 .b8 p1[512]) {{",
        f".reg .b64 at, u, v; .reg .b32 s, x, a<4>, r<2>; .reg .f32 f; .reg .{kind} d<{nd}>;",
        ".shared .align 128 .b8 room[4096];",
        "ld.param.u64 at, [p0]; mov.u32 s, room; ld.global.u32 x, [at]; ld.param.u64 u, [p1]; ld.param.u64 v, [p1+8];",
    ]
    lines += [f"ld.global.b32 a{i}, [at+{16 + 4 * i}];" for i in range(na)]
    lines += [f"ld.global.b32 d{i}, [at+{48 + 4 * i}];" for i in range(nd)]
    first, count, last = behind
    for n in range(LINKS):
        place = {"d": "r1", "x": "x", "a": f"a{(n + turn) % na}", "at": "at", "in": "s", "n": 4 * n + 32 * turn}
        in_registers = n % 2 == 0 or "{a}" in before
        a, rest = (listed("a", na), tail_a) if in_registers and turn % 4 else ("u", tail)
        lines += [before.format(**{**place, "n": 8 * n + 16}), "wgmma.fence.sync.aligned;"]
        lines += [f"{mma} {listed('d', nd)}, {a}, v, 1{rest};", "wgmma.commit_group.sync.aligned;", first.format(**place)]
        lines += [f"wgmma.wait_group.sync.aligned {count};", f"mov.b32 r1, d{(n + turn) % nd};", last.format(**place)]
    lines.append("wgmma.wait_group.sync.aligned 0;")
    lines += [f"st.global.b32 [at+{1024 + 4 * i}], d{i};" for i in range(nd)]
    return "\n".join(lines + ["st.global.u32 [at+128], x;", "ret;", "}"])


def tensor(name, use, before, turn):
    listed = "{" + ", ".join(f"a{i}" for i in range(8)) + "}"
    lines = [
        f".visible .entry {name}(.param .u64 p0, .param .align 8 .b8 p1[512]) {{",
        ".reg .b64 at, u, v; .reg .b32 s, x, t, i, a<8>, s<4>; .reg .f32 f; .reg .pred p;",
        ".shared .align 128 .b8 room[4096];",
        "ld.param.u64 at, [p0]; mov.u32 s, room; ld.global.u32 x, [at]; ld.param.u64 u, [p1]; ld.param.u64 v, [p1+8];",
        "ld.param.u32 t, [p1+16]; ld.param.u32 i, [p1+20]; setp.ne.u32 p, t, i;",
    ]
    lines += [f"ld.global.b32 a{i}, [at+{16 + 4 * i}];" for i in range(8)]
    for n in range(LINKS):
        place = {"r": listed, "x": "x", "a": f"a{(n + turn) % 8}", "at": "at", "in": "s", "n": 8 * n + 16}
        lines += [before.format(**place), use.format(**place)]
    lines += [f"st.global.b32 [at+{164 + 4 * i}], a{i};" for i in range(8)]
    return "\n".join(lines + ["st.global.u32 [at+128], x;", "ret;", "}"])


def kernel(name, product, body, turn):
    instruction, _, nd, na, nb, nc, behind = product
    mma = "mma.sync.aligned." + instruction
    if instruction.startswith("sp"):
        sparse, shape = instruction.split(" ")
        mma = f"mma.{sparse}.sync.aligned.{shape}"
    registers = lambda letter, n: "{" + ", ".join(f"{letter}{i}" for i in range(n)) + "}"
    wide = ".f32" if product[1] == "f32" else ".b32"
    lines = [
        f".visible .entry {name}(.param .u64 p0) {{",
        ".reg .b64 at; .reg .b32 s, x, y, e, k; .reg .pred p;",
        ".reg .b32 a<4>, b<4>;",
        f".reg {wide} d<8>, c<8>; .reg .b32 r<8>;",
        ".shared .align 16 .b8 room[4096];",
        "ld.param.u64 at, [p0]; mov.u32 s, room; ld.global.u32 x, [at]; ld.global.u32 y, [at+4]; ld.global.u32 e, [at+8];",
        "ld.global.u32 k, [at+12];",
    ]
    lines += [f"ld.global.b32 a{i}, [at+{16 + 4 * i}]; ld.global.b32 b{i}, [at+{32 + 4 * i}];" for i in range(4)]
    lines += [f"ld.global.b32 c{i}, [at+{48 + 4 * i}];" for i in range(nc)]
    for n in range(LINKS):
        lines.append(
            f"{mma} {registers('d', nd)}, {registers('a', na)}, {registers('b', nb)}, {registers('c', nc)}{behind.format(e='e')};")
        which = (n + turn) % nd
        lines.append(f"mov.b32 r0, d{which};")
        place = {"d": "r0", "x": "x", "y": "y", "a": f"a{(n + turn) % na}", "at": "at", "in": "s", "n": 4 * n + 256 * turn, "k": "k"}
        lines.append(body.format(**place))
        # The next product waits for the reader, if that has a result.
        lines += ["mov.b32 c0, x;"] if "{x}, " in body.partition(";")[0] else [f"mov.b32 c{i}, d{i};" for i in range(nc)]
    lines.append("st.global.u32 [at+128], x;")
    lines += [f"st.global.b32 [at+{132 + 4 * i}], c{i};" for i in range(nc)]
    lines += [f"st.global.b32 [at+{164 + 4 * i}], a{i};" for i in range(4)]
    return "\n".join(lines + ["ret;", "}"])


def vote(name, producer, body, turn):
    lines = [
        f".visible .entry {name}(.param .u64 p0) {{",
        ".reg .b64 at; .reg .b32 s, x, y, k; .reg .pred p, q; .reg .f32 f0, f1; .reg .b32 r<8>;",
        ".shared .align 16 .b8 room[4096];",
        "ld.param.u64 at, [p0]; mov.u32 s, room; ld.global.u32 x, [at]; ld.global.u32 y, [at+4]; ld.global.u32 k, [at+8];",
    ]
    for n in range(LINKS):
        lines.append(producer.format(x="x"))
        place = {"d": "r0", "x": "x", "y": "y", "a": "x", "at": "at", "in": "s", "n": 4 * n + 256 * turn, "k": "k"}
        lines.append(body.format(**place))
    return "\n".join(lines + ["st.global.u32 [at+128], x;", "ret;", "}"])


def constant(name, before, use, turn):
    lines = [
        f".visible .entry {name}(.param .u64 p0, .param .u32 p1, .param .u32 p2) {{",
        ".reg .b64 at; .reg .b32 x, y, k, d; .reg .pred p;",
        "ld.param.u64 at, [p0]; ld.global.u32 x, [at]; ld.param.u32 y, [p1]; ld.param.u32 k, [p2]; mov.u32 d, y;",
    ]
    for n in range(LINKS):
        place = {"x": "x", "y": "y", "k": "k", "d": "d", "n": 8 * n + 16 * turn}
        lines += [before.format(**place), use.format(**place)]
    return "\n".join(lines + ["st.global.u32 [at+128], x; st.global.u32 [at+132], k; st.global.u32 [at+136], y;", "ret;", "}"])


def build(ptxas, target, out, name, kernels):
    source = out / f"{name}.ptx"
    head = HEAD.format(version="9.0", target=target)
    source.write_text(head + ".const .align 4 .b8 fixed[4096];\n" + "\n".join(kernels))
    done = subprocess.run([ptxas, "-arch", target, source, "-o", out / f"{name}.cubin"], capture_output=True, text=True)
    source.unlink()
    if done.returncode != 0:
        print(f"latencies.py: {target} {name} is left out: {(done.stdout + done.stderr).strip().splitlines()[0]}")


def main():
    target, out = sys.argv[1], pathlib.Path(sys.argv[2])
    ptxas = sys.argv[3] if len(sys.argv) > 3 else "ptxas"
    out.mkdir(parents=True, exist_ok=True)
    for shape, product in PRODUCTS.items():
        bodies = {**READERS, **WRITERS}
        kernels = [kernel(f"product_{shape}_{what}_{n}", product, body, n) for what, body in bodies.items() for n in range(KERNELS)]
        build(ptxas, target, out, shape, kernels)
    for kind, producer in VOTES.items():
        bodies = {**READERS, **UNIFORM}
        kernels = [vote(f"vote_{kind}_{what}_{n}", producer, body, n) for what, body in bodies.items() for n in range(KERNELS)]
        build(ptxas, target, out, kind, kernels)
    for what, use in CONSTANTS.items():
        kernels = [constant(f"constant_{what}_{a}_{n}", ADDRESSES[a], use, n) for a in ADDRESSES for n in range(KERNELS)]
        build(ptxas, target, out, f"constant_{what}", kernels)
    for shape, group in GROUPS.items():
        bodies = [(f"{a}_{b}", BEFORE[a], BEHIND[b]) for a in BEFORE for b in BEHIND]
        kernels = [warpgroup(f"warpgroup_{shape}_{what}_{n}", group, a, b, n) for what, a, b in bodies for n in range(4)]
        build(ptxas, target, out, shape, kernels)
    for what, use in TENSOR.items():
        kernels = [tensor(f"tensor_{what}_{a}_{n}", use, BEFORE[a], n) for a in BEFORE for n in range(KERNELS)]
        build(ptxas, target, out, what, kernels)


if __name__ == "__main__":
    main()
