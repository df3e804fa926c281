#!/usr/bin/env bash
# The tour of `make run`: show.sh PROGRAM CUBIN SM
set -euo pipefail
program=$1 cubin=$2 sm=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
say() { printf '\n== %s\n' "$*"; }

say "Round trip: decode, SSA, text, parse, lower with all registers cleared, patch, compare"
"$program" roundtrip "$cubin" --arch "$sm"

say "Lift: kernels as MLIR text, of which a few lines"
"$program" lift "$cubin" -o "$out/all.mlir"
awk '/LDG|FFMA|STG|EXIT/ && n < 6 { print substr($0, 1, 170); n++ }' "$out/all.mlir"
echo "   ... $(grep -c 'sass\.func' "$out/all.mlir") kernels, $(wc -l < "$out/all.mlir") lines in all"

say "Apply: FFMA keeps denormals in the kernels that pass.toml names"
cat > "$out/pass.toml" <<T
[[pass]]
name = "ffma-deftz"
sm = ["$sm"]
fn = ["*mul_mat*"]
mode = "apply"
T
cat "$out/pass.toml"
echo
"$program" apply "$cubin" --config "$out/pass.toml" -o "$out/new.cubin"

say "What changed"
cmp -l "$cubin" "$out/new.cubin" > "$out/bytes.txt" || [ $? -eq 1 ] # 1: they differ; more is a failure
echo "$(wc -l < "$out/bytes.txt") of $(wc -c < "$cubin") bytes"
"$program" disasm "$cubin" --hex > "$out/before.txt"
"$program" disasm "$out/new.cubin" --hex > "$out/after.txt"
diff "$out/before.txt" "$out/after.txt" > "$out/diff.txt" || [ $? -eq 1 ]
head -n 8 "$out/diff.txt"
echo "   ... $(grep -c '^<' "$out/diff.txt") instructions"
