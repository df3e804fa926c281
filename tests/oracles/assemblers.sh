#!/usr/bin/env bash
# Assemblers side by side on the distinct words of the corpus and of the own kernels: sass2mlir's, CuAssembler's for sm_75 and sm_86, and
# that of basalt-sass for sm_120a.
#
#   tests/oracles/assemblers.sh ORACLES CORPUS OWN [SAMPLE]
#
# The others, which would take hours, get every SAMPLE-th word (200 unless given). They are brought into ORACLES: basalt-sass and what
# CuAssembler needs from PyPI, CuAssembler from GitHub, unless SASS_CUASSEMBLER names a checkout. One that cannot be reached is left out,
# and a line says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
oracles=$(cd "$1" && pwd)
corpus=$2 own=$3 sample=${4:-200}

packages=(basalt-sass==1.0.0 sympy==1.14.0 pyelftools==0.33)
venv=$oracles/assemblers
python=$venv/bin/python
if [ "$(cat "$venv/.packages" 2>/dev/null)" != "${packages[*]}" ]; then
  [ -x "$python" ] || python3 -m venv "$venv"
  if "$python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"; then
    echo "${packages[*]}" > "$venv/.packages"
  else
    echo "assemblers.sh: PyPI cannot be reached: sass2mlir alone"
    python=python3
  fi
fi

commit=96a9f72baf00f40b9b299653fcef8d3e2b4a3d49
cuassembler=${SASS_CUASSEMBLER:-$oracles/CuAssembler}
if [ ! -d "$cuassembler/CuAsm" ]; then
  rm -rf "$cuassembler"
  git clone --quiet https://github.com/cloudcores/CuAssembler "$cuassembler" && git -C "$cuassembler" checkout --quiet "$commit" ||
    echo "assemblers.sh: GitHub cannot be reached: without CuAssembler"
fi

cargo build --quiet --release --package sass2mlir-isa --example asmcheck
compare() {
  local sm=$1 cubins
  shift
  mapfile -t cubins < <(find "$corpus" "$own" -name '*.cubin' -path "*/${sm%a}*")
  echo "$sm: ${#cubins[@]} files"
  "$python" tests/oracles/assemblers.py --sm "$sm" --tools "$oracles" --sample "$sample" "$@" "${cubins[@]}"
}
has_python=() has_cuassembler=()
[ "$python" = python3 ] || has_python=(--basalt)
[ ! -d "$cuassembler/CuAsm" ] || [ "$python" = python3 ] || has_cuassembler=(--cuassembler "$cuassembler")
compare sm_75 "${has_cuassembler[@]}"
compare sm_86 "${has_cuassembler[@]}"
compare sm_120a "${has_python[@]}"
