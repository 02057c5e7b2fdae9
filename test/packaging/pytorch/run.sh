#!/bin/sh
# Tests flydsl_aot.torch with PyTorch on the CPU and the emulator; needs a build (PYTHON_BUILD, default build/).
#   test/packaging/pytorch/run.sh [unittest arguments]
# PyTorch comes from the package index, about 180 MB, into BUILD/torch (cuda_stand_in.py says how it runs without CUDA);
# PEERS_WHEELS=FOLDER takes FOLDER/torch/*.whl instead. FLYDSL_AOT_SKIP_TORCH=1 skips it all.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${PYTHON_BUILD:-$root/build}
version=2.15.0

if [ "${FLYDSL_AOT_SKIP_TORCH-}" = 1 ]; then
  echo "skipped: FLYDSL_AOT_SKIP_TORCH=1"
  exit 0
fi

python=${PYTHON:-python3}
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
venv=$build/torch
want="$version $tag $(cat "$here/cuda_stand_in.py" "$here/run.sh" | cksum)"
if [ "$(cat "$venv/stamp" 2>/dev/null)" != "$want" ]; then
  rm -rf "$venv"
  "$python" -m venv "$venv"
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  wheel=$(find "${PEERS_WHEELS:-/nonexistent}/torch" -name "torch-$version-$tag-*.whl" 2>/dev/null | head -n 1)
  "$python" "$root/test/emulator/peers/fetch/wheel_members.py" "${wheel:-torch==$version@$tag}" "$site" '*' \
    '!torch/lib/libtorch_cuda*' '!torch/lib/libtorch_nvshmem*' '!torch/bin/protoc*' '!torch-*'
  chmod +x "$site/torch/bin/torch_shm_manager"
  "$venv/bin/pip" install -q filelock 'typing-extensions>=4.13' 'sympy>=1.13.3' networkx jinja2 fsspec numpy expecttest
  "$python" "$here/cuda_stand_in.py" "$site/torch/lib"
  echo "$want" > "$venv/stamp"
fi

export PYTHONPATH="$build/python:$here" FLYDSL_AOT_LIBRARY="$build/lib/libflydsl_aot.so"
export TORCH_PYTHON_NATIVE_USER_GRAPH_ORDER_FN=no_gpu_overrides.none
cd "$here"
if [ $# -gt 0 ]; then
  exec "$venv/bin/python" -B -m unittest "$@"
fi
exec "$venv/bin/python" -B -m unittest discover -v -s "$here" -p '*_test.py'
