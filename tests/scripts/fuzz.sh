#!/usr/bin/env bash
# Runs every fuzz target for a while, from the bundled kernels on: fuzz.sh [SECONDS]
# cargo-fuzz asks for a nightly compiler's options; a stable one takes them too when it is told to.
set -euo pipefail
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
export RUSTC_BOOTSTRAP=1
for target in $(cargo fuzz list); do
  mkdir -p "fuzz/corpus/$target"
  cargo fuzz run "$target" "fuzz/corpus/$target" tests/kernels/sm_87 tests/kernels/containers -- \
    -max_total_time="${1:-60}" -max_len=200000 -rss_limit_mb=4096 -print_final_stats=1
done
