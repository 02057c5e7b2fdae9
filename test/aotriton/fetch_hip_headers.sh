#!/bin/sh
# Unpacks the HIP headers of Debian's libamdhip64-dev (5.2) to build/hip_headers, without installing the package and the runtime that
# it pulls in: a libamdhip64.so on the machine would be opened by tests. Does nothing when they are there.
set -eu
cd "$(dirname "$0")/../.."
to="$PWD/build/hip_headers"
[ ! -e "$to/usr/include/hip/hip_runtime_api.h" ] || exit 0
mkdir -p "$to/package"
cd "$to/package"
if ! apt-get -q download libamdhip64-dev && ! { apt-get update -q && apt-get -q download libamdhip64-dev; }; then
  echo "warning: no HIP headers: tests of libaotriton_v2.so are compiled with its own few names" >&2
  exit 0
fi
dpkg-deb -x libamdhip64-dev_*.deb ..
rm -r "$to/package"
