#!/usr/bin/env bash
# Installs what a build needs and the machine lacks: deps.sh [mlir] [python]
# Always a C compiler, which Rust links with, and a C++ compiler for the emulator's tests; Rust itself it leaves to you. `mlir`: LLVM 22,
# where apt has it. `python`: for the corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v cargo >/dev/null; then
  echo "sass2mlir needs Rust 1.88 or newer: see https://rustup.rs" >&2
  exit 1
fi
have=$(rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
if [ "$(printf '%s\n' 1.88.0 "$have" | sort -V | head -n 1)" != 1.88.0 ]; then
  echo "sass2mlir needs Rust 1.88 or newer, this is $have: run 'rustup update stable'" >&2
  exit 1
fi

root=()
[ "$(id -u)" = 0 ] || root=(sudo)
refreshed=
refresh() {
  [ -n "$refreshed" ] || "${root[@]}" apt-get update -qq
  refreshed=yes
}

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v c++ >/dev/null || missing+=(g++)
for want in "$@"; do
  case $want in
    mlir)
      # What is there already is used as it is; the build says what it lacks.
      [ ! -f "${SASS_LLVM_DIR:-/usr/lib/llvm-22}/lib/cmake/mlir/MLIRConfig.cmake" ] || continue
      command -v apt-get >/dev/null || continue
      known() { apt-cache show llvm-22-dev >/dev/null 2>&1; }
      known || { refresh; known; } || continue
      read -r -a packages < dialect/llvm/packages.txt
      missing+=("${packages[@]}") ;;
    python)
      # The corpus checks install NVIDIA's tools with pip, into a virtual environment.
      python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3 python3-venv) ;;
  esac
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "please install: ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
refresh
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
