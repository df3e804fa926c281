#!/usr/bin/env bash
# Builds sass2mlir for aarch64 on an x86-64 Debian machine and runs it under emulation: aarch64.sh [FOLDER]
# The standard library for aarch64 comes from Debian's rustc-web packages, unpacked into FOLDER (the packages conflict with
# an installed rustup, and the library fits only their own compiler); the C linker and the emulator are installed.
set -euo pipefail
mkdir -p "${1:-target/aarch64}"
dir=$(cd "${1:-target/aarch64}" && pwd)
cubin=tests/kernels/sm_87/own_features.cubin

root=()
[ "$(id -u)" = 0 ] || root=(sudo)
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
fi

if [ ! -f "$dir/.whole" ]; then
  mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" "$dir/debs"
  cat > "$dir/apt.conf" <<C
APT::Architectures { "amd64"; "arm64"; };
Acquire::Languages "none";
Dir::State "$dir/state";
Dir::State::status "/dev/null";
Dir::Cache "$dir/cache";
APT::Sandbox::User "root";
C
  export APT_CONFIG=$dir/apt.conf
  apt-get update -qq
  # the libraries that carry a version in their name are found through the dependencies
  std=$(apt-cache depends libstd-rust-web-dev | sed -n 's/.*Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p' | head -n 1)
  llvm=$(apt-cache depends "$std" | sed -n 's/.*Depends: \(libllvm[0-9]*\)$/\1/p' | head -n 1)
  (cd "$dir/debs" && apt-get download -qq rustc-web:amd64 "$std:amd64" "$llvm:amd64" libstd-rust-web-dev:amd64 libstd-rust-web-dev:arm64)
  for deb in "$dir"/debs/*.deb; do dpkg -x "$deb" "$dir/unpacked"; done
  rm -r "$dir/state" "$dir/cache" "$dir/debs"
  unset APT_CONFIG
  touch "$dir/.whole"
fi

export RUSTC=$dir/unpacked/usr/bin/rustc
export LD_LIBRARY_PATH=$dir/unpacked/usr/lib/x86_64-linux-gnu:$dir/unpacked/usr/lib
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
cargo build --release --no-default-features --features internal-ir --target aarch64-unknown-linux-gnu --target-dir "$dir/target"
program=$dir/target/aarch64-unknown-linux-gnu/release/sass2mlir
file "$program" 2>/dev/null || true
qemu-aarch64 -L /usr/aarch64-linux-gnu "$program" roundtrip "$cubin" --arch sm_87 | tail -n 3
