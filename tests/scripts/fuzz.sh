#!/usr/bin/env bash
# Runs every fuzz target for a while: fuzz.sh [SECONDS]
set -euo pipefail
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "cargo fuzz needs a nightly toolchain (rustup toolchain install nightly); 'make test' runs the same targets with proptest" >&2
  exit 1
fi
for target in $(cargo +nightly fuzz list); do
  cargo +nightly fuzz run "$target" -- -max_total_time="${1:-60}" -rss_limit_mb=4096
done
