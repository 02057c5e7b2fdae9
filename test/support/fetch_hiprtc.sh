#!/bin/sh
# fetch_hiprtc.sh FOLDER: unpacks Debian's HIP runtime 5.2, which holds hipRTC, and the libraries it needs (42 MB, clang 15 among them) to
# FOLDER/usr/lib/x86_64-linux-gnu. They are not installed: a libamdhip64.so on the machine would be opened by tests. No root is
# needed. Does nothing when they are there.
set -eu
mkdir -p "$1"
cd "$1"
[ ! -e complete ] || exit 0
packages="libamdhip64-5 libhiprtc-builtins5 libamd-comgr2 libllvm15 libhsa-runtime64-1 libhsakmt1 libnuma1 libelf1"
apt-get -q download $packages
for package in *.deb; do dpkg-deb -x "$package" .; done
rm *.deb
touch complete
