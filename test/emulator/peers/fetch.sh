#!/bin/bash
# Fetches one family of third-party wheels from PyPI and makes its code objects under DIR. Does nothing when they are there.
#   fetch.sh DIR aiter|triton|triton_attention|triton_features|triton_backward|triton_gemm|flydsl, or one of the last five with _sweep after it
# No test needs the sweeps, which are what an autotuner would try (350, 500, 200, 480 and 170 compilations, 10, 13, 5, 8 and 7 minutes of a core): tables do.
# PEERS_WHEELS=FOLDER      takes wheels that lie in FOLDER/{aiter,triton,flydsl,torch} instead of downloading them
# PYTHON, LLD              Python (default python3) and ld.lld (default ld.lld-22) to use
# FLYDSL_AOT_SKIP_PEERS=1  does nothing and exits with 77
set -Eeuo pipefail

# Pinned: a new upload cannot turn a green tree red.
aiter_version=0.1.7.post2.dev18
triton_version=3.9.0
flydsl_version=0.5.0
torch_version=2.15.0
numpy_version=2.4.6
aiter_members=('fmha_v3_fwd/*.co' 'fmha_v3_bwd/*.co' 'bf16gemm/*.co' 'f4gemm/*.co' 'mla/mla_dec_stage1_bf16_*.co')
aiter_members=("${aiter_members[@]/#/aiter_meta/hsa/gfx950/}")

if [ $# != 2 ]; then
  echo "usage: fetch.sh DIR aiter|triton|triton_attention|triton_features|triton_backward|triton_gemm|flydsl, with _sweep after one of the last five" >&2
  exit 2
fi
family=$2
case $family in
  aiter) sources=wheel_members ;;
  triton) sources="compile_triton triton_kernels triton_offline" ;;
  triton_attention | triton_attention_sweep) sources="compile_triton_attention triton_attention triton_decode triton_offline" ;;
  triton_features | triton_features_sweep) sources="compile_triton_features triton_features triton_attention triton_offline" ;;
  triton_backward | triton_backward_sweep) sources="compile_triton_backward triton_backward triton_offline" ;;
  triton_gemm | triton_gemm_sweep) sources="compile_triton_gemm triton_gemm triton_offline" ;;
  flydsl | flydsl_sweep) sources="wheel_members compile_flydsl torch_stub" ;;
  *) echo "fetch.sh: no family '$family'" >&2; exit 2 ;;
esac
if [ "${FLYDSL_AOT_SKIP_PEERS-}" = 1 ]; then
  echo "skipped: FLYDSL_AOT_SKIP_PEERS=1; no third-party code object was fetched for $family"
  exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
python=$dir/venv/bin/python
failed() {
  echo "error: fetching $family failed. It needs PyPI or PEERS_WHEELS; FLYDSL_AOT_SKIP_PEERS=1 skips these tests." >&2
}
trap failed ERR

# The families are fetched side by side and share the virtual environment.
exec 9>"$dir/lock"
locked() { flock 9; "$@"; flock -u 9; }

local_wheel() {  # local_wheel FAMILY: its path, or nothing
  [ -z "${PEERS_WHEELS-}" ] || [ ! -d "$PEERS_WHEELS/$1" ] || find "$PEERS_WHEELS/$1" -name '*.whl' | sort | tail -n 1
}

make_venv() {
  if "$python" -c 'import numpy' 2>/dev/null; then return; fi
  rm -rf "$dir/venv"
  "${PYTHON:-python3}" -m venv "$dir/venv"
  "$python" -m pip install -q --no-cache-dir "numpy==$numpy_version"
}

install() {  # install FAMILY REQUIREMENT
  local wheel
  wheel=$(local_wheel "$1")
  "$python" -m pip install -q --no-cache-dir --no-deps "${wheel:-$2}"
}

members() {  # members FAMILY REQUIREMENT FOLDER PATTERN...: unpacks parts of a wheel, without downloading the rest if possible
  local wheel requirement=$2 folder=$3
  wheel=$(local_wheel "$1")
  shift 3
  "$python" "$here/fetch/wheel_members.py" "${wheel:-$requirement}" "$folder" "$@"
}

bitcode=triton/backends/amd/lib

aiter() {
  members aiter "amd-aiter==$aiter_version" "$dir/aiter" "${aiter_members[@]}"
}

triton() {
  locked install triton "triton==$triton_version"
  "$python" "$here/fetch/compile_triton.py" "$dir/triton"
}

compiled() {  # compiled FAMILY few|sweep
  locked install triton "triton==$triton_version"
  "$python" "$here/fetch/compile_$1.py" "$dir/$family" "$2"
}

triton_attention() { compiled triton_attention few; }
triton_attention_sweep() { compiled triton_attention sweep; }
triton_features() { compiled triton_features few; }
triton_features_sweep() { compiled triton_features sweep; }
triton_backward() { compiled triton_backward few; }
triton_backward_sweep() { compiled triton_backward sweep; }
triton_gemm() { compiled triton_gemm few; }
triton_gemm_sweep() { compiled triton_gemm sweep; }

# FlyDSL links with the ld.lld of a ROCm folder and with two bitcode libraries of ROCm's, which Triton's wheel also holds.
flydsl_compiled() {  # flydsl_compiled few|sweep
  local lld
  lld=${LLD:-$(command -v ld.lld-22)}
  locked install flydsl "flydsl==$flydsl_version"
  members torch "torch==$torch_version" "$dir/torch" 'torch/_native/*' 'torch/_inductor/kernel/vendored_templates/flydsl/*' \
    torch/_inductor/heuristics/template/flydsl.py
  members triton "triton==$triton_version" "$dir/bitcode" "$bitcode/ockl.bc" "$bitcode/ocml.bc"
  mkdir -p "$dir/rocm/llvm/bin" "$dir/rocm/amdgcn"
  ln -sfn "$lld" "$dir/rocm/llvm/bin/ld.lld"
  ln -sfn "$dir/bitcode/$bitcode" "$dir/rocm/amdgcn/bitcode"
  ROCM_PATH=$dir/rocm "$python" "$here/fetch/compile_flydsl.py" "$dir/torch" "$dir/$family" "$1"
}
flydsl() { flydsl_compiled few; }
flydsl_sweep() { flydsl_compiled sweep; }

locked make_venv
# What the objects depend on.
want=$(for name in $sources; do cat "$here/fetch/$name.py"; done | sha256sum)
want="amd-aiter $aiter_version, triton $triton_version, flydsl $flydsl_version, torch $torch_version, drivers ${want%% *}"
[ "$family" != aiter ] || want+=", members ${aiter_members[*]}"
if [ "$(cat "$dir/$family.stamp" 2>/dev/null)" = "$want" ]; then
  echo "$family: already in $dir"
  exit 0
fi
rm -rf "${dir:?}/$family"
$family
echo "$want" > "$dir/$family.stamp"
echo "$family: $(find "$dir/$family" -name '*.co' | wc -l) code objects in $dir/$family"
