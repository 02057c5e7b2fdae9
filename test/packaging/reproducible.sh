#!/bin/sh
# Builds the committed sources twice, in folders of different names and without a compiler cache, and compares byte for byte.
#   test/packaging/reproducible.sh             the archive packer, a kernel of each operator that compiles fast: some minutes
#   test/packaging/reproducible.sh --library   libflydsl_aot.so, libaotriton_v2.so and the binding's layout too
#   test/packaging/reproducible.sh --tarballs  all of packaging/tarball.sh: twice a clean build
# Not in CI, which compares two packs of one build (packaging_tarball).
set -eu
cd "$(dirname "$0")/../.."
export CCACHE_DISABLE=1

kernels="topk_softmax/topk_softmax_fp32_n512_narrow gemm/gemm_second_pass attention_backward/attention_backward_bf16_convert
  mx_quantise/mx_quantise"
targets="bin/flydsl-aot-pack"
case "${1-}" in
  "") ;;
  --library) targets="$targets lib/libflydsl_aot.so lib/libaotriton_v2.so python/flydsl_aot/_layout.py" ;;
  --tarballs) targets="" ;;
  *) echo "usage: test/packaging/reproducible.sh [--library|--tarballs]" >&2; exit 2 ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for place in "$folder/a" "$folder/another place"; do
  git clone -q . "$place"
  mkdir "$place/made"
  if [ -z "$targets" ]; then
    "$place/packaging/tarball.sh" --out "$place/made"
    continue
  fi
  objects=""
  (
    cd "$place"
    cmake --preset package -DFLYDSL_AOT_OLD_GLIBC=ON -DFLYDSL_AOT_REPRODUCIBLE=ON > /dev/null
    for kernel in $kernels; do
      object=kernels/gfx950/$kernel.co
      ninja -C build-package -t query "$object" > /dev/null 2>&1 && objects="$objects $object"
    done
    [ -n "$objects" ] || { echo "error: none of these kernels is built any more: $kernels" >&2; exit 1; }
    # shellcheck disable=SC2086  # words without spaces
    ninja -C build-package $targets $objects
    for file in $targets $objects; do cp -L "build-package/$file" made; done
  )
done
(cd "$folder/another place/made" && sha256sum ./*) > "$folder/sums"
cat "$folder/sums"
[ -s "$folder/sums" ]
(cd "$folder/a/made" && sha256sum --quiet -c "$folder/sums")
echo "equal: $(wc -l < "$folder/sums") files"
