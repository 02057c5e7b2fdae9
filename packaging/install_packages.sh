#!/bin/sh
# Installs what the build and the tests need on Debian bookworm (as root); does nothing when everything is there. The one
# list of these packages: packaging/quickstart.sh and test/run.sh both call this.
set -eu

packages="
  cmake ninja-build g++ ccache git python3 python3-venv
  clang-22 lld-22 llvm-22 llvm-22-dev
  zlib1g-dev libzstd-dev libxxhash-dev nlohmann-json3-dev libcli11-dev libcairo2 libgtest-dev libgmock-dev valgrind parallel python3-numpy pkg-config"

missing=""
for package in $packages; do
  if ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed'; then
    missing="$missing $package"
  fi
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "error: these packages are missing; install them as root:$missing" >&2
  exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086  # the list is meant to be split
apt-get install -q -y --no-install-recommends $missing
