#!/bin/sh
# Builds the gfx950 archive with AITER's kernels as a second backend (-DFLYDSL_AOT_WITH_AITER=ON), from an installed amd-aiter wheel, and
# tests it on the emulator; needs a build with all kernels (AITER_BUILD, default build/), whose archive is as before in the end.
# The wheel comes from the package index, about 38 MB, into BUILD/aiter_wheel; PEERS_WHEELS=FOLDER takes FOLDER/aiter/*.whl instead.
# FLYDSL_AOT_SKIP_PEERS=1 skips it all.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${AITER_BUILD:-$root/build}
version=$(sed -n 's/^aiter_version=//p' "$root/test/emulator/peers/fetch.sh")

if [ "${FLYDSL_AOT_SKIP_PEERS-}" = 1 ]; then
  echo "skipped: FLYDSL_AOT_SKIP_PEERS=1"
  exit 0
fi

installed=$build/aiter_wheel
if [ "$(cat "$installed/stamp" 2>/dev/null)" != "$version" ]; then
  rm -rf "$installed"
  "${PYTHON:-python3}" -m venv "$build/aiter_venv"
  wheel=$(find "${PEERS_WHEELS:-/nonexistent}/aiter" -name '*.whl' 2>/dev/null | sort | tail -n 1)
  # Nothing of it is run: it needs neither PyTorch nor ROCm here.
  "$build/aiter_venv/bin/pip" install -q --no-deps --no-cache-dir --target "$installed" "${wheel:-amd-aiter==$version}"
  echo "$version" > "$installed/stamp"
fi

archive() {  # archive ON|OFF
  cmake -S "$root" -B "$build" -DFLYDSL_AOT_WITH_AITER="$1" -DFLYDSL_AOT_AITER_DIR="$installed" > "$build/aiter_configure.log" ||
    { cat "$build/aiter_configure.log" >&2; return 1; }
  cmake --build "$build" --target flydsl_aot_archive_gfx950
}
trap 'archive OFF' EXIT
archive ON
FLYDSL_AOT_TOOL=$build/bin/flydsl-aot FLYDSL_AOT_LIBRARY_FOLDER=$build/lib LICENCE=$build/kernels/aiter/gfx950/LICENSE.aiter \
  python3 -B "$here/archive_test.py" -v
ctest --test-dir "$build" -R '^aiter_backend$' --output-on-failure
