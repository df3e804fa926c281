#!/usr/bin/env bash
# Compares the texts of fifty random words of every form of all targets with NVIDIA's disassembler, in two minutes.
#
#   tests/scripts/sample.sh ORACLES [--if-reachable]
#
# ORACLES is where its tools are, or are brought to. With --if-reachable, a machine that cannot bring them passes; a line says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
oracles=$1
if ! { tests/scripts/deps.sh python && tests/oracles/setup.sh "$oracles"; }; then
  echo "check-sample: NVIDIA's tools cannot be brought to this machine: no text was compared" >&2
  [ "${2:-}" = --if-reachable ]
  exit
fi
cargo build --release --package sass2mlir-probe
time "${CARGO_TARGET_DIR:-target}/release/probe" check --sm all --words 50 --nvdisasm "$oracles/bin/nvdisasm"
