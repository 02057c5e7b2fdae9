#!/bin/sh
# dist/flydsl_aot-<version>-linux-x86_64-<arch>.tar.gz, ...-<arch>-aotriton.tar.gz and ...-emulator.tar.gz, each with its SHA-256 sum.
# Options: package_options.sh. Equal sources and SOURCE_DATE_EPOCH give equal bytes.
set -eu
. "$(dirname "$0")/package_options.sh"
# shellcheck disable=SC2086  # words without spaces
cmake --preset package $defines
cmake --build --preset package
rm -rf build-package/_CPack_Packages
cpack --config build-package/CPackConfig.cmake -B build-package/packed
mkdir -p "$out"
mv build-package/packed/*.tar.gz build-package/packed/*.sha256 "$out"
ls -l "$out"/*.tar.gz
