# Sourced by tarball.sh and wheel.sh: their options; leaves the project's root as folder, and CMake's definitions in $defines.
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
case "$archives" in *" "*) echo "error: --archives $archives: a path without spaces, please" >&2; exit 2 ;; esac
cd "$(dirname "$0")/.."

packaging/install_packages.sh
# Equal sources give equal bytes: the date in the packages is that of the last commit.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}"
export SOURCE_DATE_EPOCH

defines="$defines -DFLYDSL_AOT_TESTS=OFF -DFLYDSL_AOT_OLD_GLIBC=ON -DCMAKE_INSTALL_LIBDIR=lib -DFLYDSL_AOT_ARCHS=$(echo "$archs" | tr , ';')"
if [ -n "$archives" ]; then
  defines="$defines -DFLYDSL_AOT_KERNELS=OFF -DFLYDSL_AOT_ARCHIVES_DIR=$archives"
else
  defines="$defines -DFLYDSL_AOT_KERNELS=ON -DFLYDSL_AOT_REPRODUCIBLE=ON -DFLYDSL_AOT_ARCHIVES_DIR="
fi
