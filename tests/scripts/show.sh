#!/usr/bin/env bash
# The tour of `make run`: show.sh PROGRAM CUBIN SM
set -euo pipefail
program=$1 cubin=$2 sm=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "1. Read every kernel, lift it to SSA, print, parse, lower with all registers cleared, compare bytes"
"$program" roundtrip "$cubin" --arch "$sm" > "$out/roundtrip.txt"
head -n 5 "$out/roundtrip.txt"
echo "  ... $(wc -l < "$out/roundtrip.txt") lines in all"

say "2. One kernel as MLIR"
"$program" lift "$cubin" -o "$out/all.mlir"
awk '/sass\.func "mul_mat_q4_K"/ { on = 1 } on && !/unrealized_conversion_cast/ { print substr($0, 1, 160); if (++n == 16) exit }' "$out/all.mlir"
echo "  ... $(grep -c 'sass\.func' "$out/all.mlir") kernels, $(wc -l < "$out/all.mlir") lines in all"

say "3. A pass: ffma-deftz makes FFMA keep denormals, in the kernels that a glob names"
cat > "$out/pass.toml" <<T
[[pass]]
name = "ffma-deftz"
sm = ["$sm"]
fn = ["*mul_mat*"]
mode = "apply"
T
cat "$out/pass.toml"
"$program" apply "$cubin" --config "$out/pass.toml" -o "$out/new.cubin" > "$out/apply.txt"
grep -B 1 -A 1 -E 'ffma-deftz.*[1-9]' "$out/apply.txt" | head -n 12 || head -n 12 "$out/apply.txt"

say "4. What changed in the file"
cmp -l "$cubin" "$out/new.cubin" > "$out/bytes.txt" || true
echo "  $(stat -c %s "$cubin") bytes, $(wc -l < "$out/bytes.txt") of them differ"
"$program" disasm "$cubin" > "$out/before.txt"
"$program" disasm "$out/new.cubin" > "$out/after.txt"
diff "$out/before.txt" "$out/after.txt" | head -n 6 || true
