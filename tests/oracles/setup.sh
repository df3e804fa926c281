#!/usr/bin/env bash
# Brings NVIDIA's command-line tools, which the project's checks use as oracles, from PyPI into one folder:
#
#   tests/oracles/setup.sh [DIR]        DIR is .oracles/tools unless given
#
# DIR/bin then holds nvdisasm, cuobjdump, ptxas, nvlink and nvcc of CUDA 13.5 (sm_75 and newer), and nvdisasm-12.8 and
# ptxas-12.9, which know sm_70, sm_72 and sm_101 and follow control flow in files of CUDA 12. Nothing here is needed to
# run sass2mlir.
# A second run does nothing. Needs python3 with the venv module (Debian: python3-venv).
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:-$top/.oracles/tools}"
dir=$(cd "${1:-$top/.oracles/tools}" && pwd)

python3 -c 'import venv, ensurepip' 2>/dev/null || {
  echo "setup.sh: python3 lacks the venv module; install it (Debian and Ubuntu: apt-get install python3-venv)" >&2
  exit 1
}
[ -x "$dir/venv/bin/python" ] || python3 -m venv "$dir/venv"
pip() { "$dir/venv/bin/python" -m pip "$@" --quiet --disable-pip-version-check; }

# The stamp names what is installed, so that a changed pin reinstalls and an unchanged one costs nothing.
current=(nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvcc==13.5.37
         nvidia-cuda-cccl==13.3.5.0.6)
if [ "$(cat "$dir/.current" 2>/dev/null)" != "${current[*]}" ]; then
  pip install "${current[@]}"
  mkdir -p "$dir/bin"
  root=$("$dir/venv/bin/python" -c 'import nvidia, os; print(os.path.join(list(nvidia.__path__)[0], "cu13", "bin"))')
  for tool in nvdisasm cuobjdump ptxas nvlink; do ln -sfn "$root/$tool" "$dir/bin/$tool"; done
  # nvcc looks for its headers beside its own path, so a link to it would not do.
  printf '#!/bin/sh\nexec "%s/nvcc" "$@"\n' "$root" > "$dir/bin/nvcc"
  chmod +x "$dir/bin/nvcc"
  echo "${current[*]}" > "$dir/.current"
fi

old=(nvidia-cuda-nvcc-cu12==12.9.86 triton==3.4.0)
if [ "$(cat "$dir/.legacy" 2>/dev/null)" != "${old[*]}" ]; then
  wheels=$(mktemp -d)
  trap 'rm -rf "$wheels"' EXIT
  pip download --no-deps --dest "$wheels" --only-binary=:all: --python-version 3.11 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 "${old[@]}"
  "$dir/venv/bin/python" - "$wheels" "$dir/bin" <<'PY'
import glob, os, sys, zipfile
wheels, out = sys.argv[1:]
for package, member, name in (("nvidia_cuda_nvcc", "/bin/ptxas", "ptxas-12.9"), ("triton", "/bin/nvdisasm", "nvdisasm-12.8")):
    with zipfile.ZipFile(glob.glob(f"{wheels}/{package}*.whl")[0]) as wheel:
        entry = next(n for n in wheel.namelist() if n.endswith(member))
        target = os.path.join(out, name)
        with open(target, "wb") as f:
            f.write(wheel.read(entry))
        os.chmod(target, 0o755)
PY
  echo "${old[*]}" > "$dir/.legacy"
fi

for tool in "$dir"/bin/nvdisasm* "$dir"/bin/ptxas*; do
  printf '%s: %s\n' "$(basename "$tool")" "$("$tool" --version | sed -n 's/^Cuda compilation tools, //p')"
done
