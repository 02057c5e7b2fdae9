#!/bin/sh
# From a clone on a fresh Debian bookworm machine to the main job: installs packages (as root), builds into build/, and runs
# the attention of two layers of a real model (test/data/smollm2) through the C ABI on the emulator. Exit status 0 if every
# element is within its error bound.
set -eu
cd "$(dirname "$0")/.."

packaging/install_packages.sh
cmake --preset default
# Everything but the tests, which test/run.sh builds.
cmake --build --preset default --target flydsl-aot-tool smollm2_attention flydsl_emu flydsl_aot_archive_gfx950
build/bin/flydsl-aot info --device emulator
build/bin/smollm2_attention test/data/smollm2
