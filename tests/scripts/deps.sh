#!/usr/bin/env bash
# Installs what a build needs and the machine lacks: a C compiler, which Rust links with, and a C++ compiler for the emulator's tests.
# Asks for Rust, which it leaves to you.
set -euo pipefail

if ! command -v cargo >/dev/null; then
  echo "sass2mlir needs Rust 1.85 or newer: see https://rustup.rs" >&2
  exit 1
fi
have=$(rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
if [ "$(printf '%s\n' 1.85.0 "$have" | sort -V | head -n 1)" != 1.85.0 ]; then
  echo "sass2mlir needs Rust 1.85 or newer, this is $have: run 'rustup update stable'" >&2
  exit 1
fi

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v c++ >/dev/null || missing+=(g++)
# The corpus checks install NVIDIA's tools with pip, into a virtual environment.
if [ "${1:-}" = python ] && ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  missing+=(python3 python3-venv)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "please install: ${missing[*]}" >&2
  exit 1
fi
root=()
[ "$(id -u)" = 0 ] || root=(sudo)
echo "installing ${missing[*]}"
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
