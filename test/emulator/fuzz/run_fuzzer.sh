#!/bin/sh
# Fuzzes the loader: run_fuzzer.sh [seconds, default 60] [build folder, default build-fuzz].
# Code that runs instructions is not fuzzed: one level, built without sanitizers, for any machine with AVX2.
# Needs clang-22 and libclang-rt-22-dev. What crashes is left in the build folder as crash-*; once it is
# fixed, the input goes into corpus/.
set -eu
seconds=${1:-60}
source=$(cd "$(dirname "$0")/../../.." && pwd)
build=${2:-$source/build-fuzz}
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_C_COMPILER=clang-22 \
  -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g1" \
  -DFLYDSL_EMU_FUZZ=ON -DFLYDSL_EMU_LEVELS=avx2 \
  -DFLYDSL_AOT_RUNTIME=OFF -DFLYDSL_AOT_KERNELS=OFF -DFLYDSL_AOT_TOOLS=OFF
ninja -C "$build" loader_fuzz
mkdir -p "$build/corpus"
cd "$build"
exec "$(find "$build" -name loader_fuzz -type f)" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=4096 \
  "$build/corpus" "$source/test/emulator/fuzz/corpus"
