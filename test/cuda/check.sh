#!/bin/sh
# Verifies the architecture-neutral operators on an NVIDIA GPU: cases against float64, and under compute-sanitizer where it works.
# usage: test/cuda/check.sh BUILD [fuzz cases]     BUILD: a build with FLYDSL_AOT_CUDA=ON and sm_90 in FLYDSL_AOT_ARCHS
build=$1
fuzz=${2:-1000}
export FLYDSL_AOT_HIP_LIBRARY="$build/lib/libflydsl_aot_cuda.so"
operators="rms_norm layer_norm rms_norm_backward layer_norm_backward topk topk_softmax"
failed=0
for operator in $operators; do
  for which in "--suite smoke" "--suite full" "--fuzz $fuzz --seed 1"; do
    echo "verify $operator $which"
    "$build/bin/flydsl-aot" verify $operator --device hip $which || failed=1
  done
done
for tool in memcheck racecheck; do
  for operator in $operators; do
    echo "compute-sanitizer $tool, verify $operator --fuzz 60"
    compute-sanitizer --tool $tool --error-exitcode 9 "$build/bin/flydsl-aot" verify $operator --device hip --fuzz 60 --seed 5000 2>&1 |
      tail -4
  done
done
exit $failed
