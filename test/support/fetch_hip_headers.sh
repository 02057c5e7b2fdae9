#!/bin/sh
# fetch_hip_headers.sh FOLDER: unpacks the HIP headers of Debian's libamdhip64-dev (5.2, 170 kB) to FOLDER/usr/include. The package is not
# installed, nor the runtime that it pulls in: a libamdhip64.so on the machine would be opened by tests. No root is needed. Does
# nothing when they are there.
set -eu
mkdir -p "$1"
cd "$1"
[ ! -e usr/include/hip/hip_runtime_api.h ] || exit 0
apt-get -q download libamdhip64-dev
dpkg-deb -x libamdhip64-dev_*.deb .
rm libamdhip64-dev_*.deb
