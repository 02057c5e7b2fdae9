#!/bin/sh
# Fuzzes one target: run.sh TARGET [executions, default 1000000] [build folder, default build-fuzz]. TARGET: archive, selection, tuning,
# jit_cache or metadata. Needs clang-22 and libclang-rt-22-dev. What fails is left in the build folder as TARGET-crash-*; once it is fixed,
# its kind goes into corpus.cc or a test.
set -eu
target=$1
runs=${2:-1000000}
source=$(cd "$(dirname "$0")/../.." && pwd)
build=${3:-$source/build-fuzz}
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_C_COMPILER=clang-22 \
  -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g1" \
  -DFLYDSL_AOT_FUZZ=ON -DFLYDSL_EMU_LEVELS=avx2 -DFLYDSL_AOT_KERNELS=OFF -DFLYDSL_AOT_TOOLS=OFF
ninja -C "$build" fuzz_corpus "${target}_fuzz"
cd "$build"
bin/test/fuzz_corpus corpus
mkdir -p "found/$target"
exec "bin/test/${target}_fuzz" -runs="$runs" -max_len=2048 -timeout=20 -print_final_stats=1 -artifact_prefix="$target-" \
  "found/$target" "corpus/${target}_fuzz"
