#!/usr/bin/env bash
# Runs every test of the workspace and closes with one line that adds up the counts of all test programs.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
read -r -a features <<< "$(tests/scripts/features.sh)"
{
  cargo test --workspace --no-fail-fast "${features[@]}" "$@" 2>&1
  echo "status $?"
  tests/scripts/lit.sh debug 2>&1
  echo "status $?"
} | tee "$log" | grep -vE '^(status|running 0 tests)|^test result: ok\. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered'
status=$(sed -n 's/^status //p' "$log" | sort -n | tail -n 1)
awk '{ sub(/ +:/, ":") }
     /^test result:/ { for (i = 1; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1); if ($i ~ /^ignored/) s += $(i-1) } }
     /^  Passed:/ { p += $2 } /^  Failed:/ { f += $2 } /^  Unsupported:/ { s += $2 }
     END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit p == 0 }' "$log" || status=1
exit "${status:-1}"
