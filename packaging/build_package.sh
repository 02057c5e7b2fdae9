# Sourced by tarball.sh and wheel.sh: options, and the build in build-package/ that both pack.
#   --archs LIST     architectures, with commas (default gfx950)
#   --archives DIR   take flydsl_aot.<arch>.fda from there, made from these sources elsewhere, instead of compiling the kernels
#   --out DIR        where the packages go (default dist/)
#   -DNAME=VALUE     to CMake
archs=gfx950
archives=""
out=dist
defines=""
while [ $# -gt 0 ]; do
  case "$1" in
    --archs|--archives|--out)
      [ $# -ge 2 ] || { echo "error: $1 needs a value" >&2; exit 2; }
      case "$1" in
        --archs) archs=$2 ;;
        --archives) archives=$2 ;;
        --out) out=$2 ;;
      esac
      shift 2 ;;
    -D*" "*) echo "error: $1: no spaces, please" >&2; exit 2 ;;
    -D?*=*) defines="$defines $1"; shift ;;
    *) echo "usage: $0 [--archs LIST] [--archives DIR] [--out DIR] [-DNAME=VALUE]..." >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -z "$archives" ] || archives=$(cd "$archives" && pwd)
cd "$(dirname "$0")/.."

packaging/install_packages.sh
# Equal sources give equal bytes: the date in the packages is that of the last commit.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}"
export SOURCE_DATE_EPOCH

set -- "-DFLYDSL_AOT_ARCHS=$(echo "$archs" | tr , ';')"
if [ -n "$archives" ]; then
  set -- "$@" -DFLYDSL_AOT_KERNELS=OFF "-DFLYDSL_AOT_ARCHIVES_DIR=$archives"
else
  set -- "$@" -DFLYDSL_AOT_KERNELS=ON -DFLYDSL_AOT_ARCHIVES_DIR=
fi
# shellcheck disable=SC2086  # words without spaces
cmake --preset package "$@" $defines
cmake --build --preset package
