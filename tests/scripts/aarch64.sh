#!/usr/bin/env bash
# Builds sass2mlir for aarch64 on an x86-64 Debian machine and takes a bundled cubin through it under emulation, round trip, lifting and a
# pass: aarch64.sh [FOLDER]
# The standard library for aarch64 comes from Debian's rustc-web packages, unpacked into FOLDER (the packages conflict with
# an installed rustup, and the library fits only their own compiler); the C linker and the emulator are installed.
set -euo pipefail
mkdir -p "${1:-target/aarch64}"
dir=$(cd "${1:-target/aarch64}" && pwd)
cubin=tests/kernels/sm_87/own_mul_mat.cubin

root=()
[ "$(id -u)" = 0 ] || root=(sudo)
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
fi

if [ ! -f "$dir/.whole" ]; then
  # A run that was cut short left pieces.
  rm -rf "$dir/state" "$dir/cache" "$dir/debs" "$dir/unpacked"
  mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" "$dir/debs"
  cat > "$dir/apt.conf" <<C
APT::Architectures { "amd64"; "arm64"; };
Acquire::Languages "none";
Dir::State "$dir/state";
Dir::State::status "/dev/null";
Dir::Cache "$dir/cache";
APT::Sandbox::User "root";
Acquire::Retries "3";
C
  export APT_CONFIG=$dir/apt.conf
  apt-get update -qq
  # the libraries that carry a version in their name are found through the dependencies
  [ -n "$(apt-cache pkgnames libstd-rust-web-dev)" ] || {
    echo "apt knows no libstd-rust-web-dev, which brings Rust's library for aarch64: this needs Debian 12 or 13 with its updates" >&2
    exit 1
  }
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
# It is run once, on small files: what compiles quickly is enough.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
SASS_ACTIVE_SMS=sm_87 cargo build --release --package sass2mlir --no-default-features --features internal-ir \
  --target aarch64-unknown-linux-gnu --target-dir "$dir/target"

program=$dir/target/aarch64-unknown-linux-gnu/release/sass2mlir
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
emulated() { qemu-aarch64 -L /usr/aarch64-linux-gnu "$program" "$@"; }

emulated roundtrip "$cubin" --arch sm_87
emulated lift "$cubin" -o "$out/k.mlir"
emulated lower "$out/k.mlir" --into "$cubin" -o "$out/same.cubin"
cmp "$cubin" "$out/same.cubin"
printf '[[pass]]\nname = "ffma-deftz"\nfn = ["*mul_mat*"]\nmode = "apply"\n' > "$out/pass.toml"
emulated apply "$cubin" --config "$out/pass.toml" -o "$out/new.cubin" | tee "$out/said"
grep -q "FTZ dropped at 112 sites" "$out/said"
emulated apply "$out/new.cubin" --config "$out/pass.toml" -o "$out/again.cubin" | tee "$out/said"
if grep -q "FTZ dropped" "$out/said"; then exit 1; fi
cmp "$out/new.cubin" "$out/again.cubin"
echo "aarch64: round trip, lift, lower and apply are right under emulation"
