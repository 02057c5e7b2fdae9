#!/bin/sh
# Sets up, builds with warnings as errors into build/, checks the sources and runs the tests.
#   test/run.sh          everything
#   test/run.sh quick    only the tests labelled quick (under about two seconds each)
#   test/run.sh torch    after either: flydsl_aot.torch with PyTorch on the CPU (test/packaging/pytorch/)
#   test/run.sh aiter    after either: the archive with AITER's kernels, from an installed amd-aiter wheel (test/packaging/aiter/)
#   test/run.sh wheel    after either: the wheels, in virtual environments (test/packaging/wheel/); build tools and NumPy from the package index
set -eu
cd "$(dirname "$0")/.."

case "${1-}" in
  "") label="" ;;
  quick) label="-L quick" ;;
  torch) exec test/packaging/pytorch/run.sh ;;
  aiter) exec test/packaging/aiter/run.sh ;;
  wheel) exec python3 test/packaging/wheel/wheel_test.py --source "$(pwd)" --archives build/lib --define FLYDSL_AOT_WERROR=ON ;;
  *) echo "usage: test/run.sh [quick|torch|aiter|wheel]" >&2; exit 2 ;;
esac

packaging/install_packages.sh
test/support/fetch_hip_headers.sh build/hip_headers ||
  echo "warning: no HIP headers: tests of libaotriton_v2.so are compiled with the few names of v2src/aotriton/hip_types" >&2
python3 test/check_sources.py
cmake --preset ci
cmake --build --preset ci
# shellcheck disable=SC2086  # empty or two words
ctest --test-dir build --output-on-failure -j "$(nproc)" $label
