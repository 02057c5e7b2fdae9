"""Writes everything generated: headers, instance sources, manifests and build rules.

usage: python3 codegen/generate/main.py --arch gfx950 [--arch ...] --out build/generated
"""

import argparse
import re
import sys
from pathlib import Path

if not __package__:  # run as a program: packages are found from codegen/, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from describe.registry import OPERATORS  # noqa: E402
from generate import build_rules, headers, instances, manifest, recipes  # noqa: E402
from generate.output import write_if_changed  # noqa: E402

_VERSION_HEADER = Path(__file__).resolve().parents[2] / "include/flydsl_aot/version.h"


def library_version():
    """FLYDSL_AOT_VERSION of include/flydsl_aot/version.h."""
    text = _VERSION_HEADER.read_text()
    part = {}
    for name in ("MAJOR", "MINOR", "PATCH"):
        match = re.search(rf"#define FLYDSL_AOT_VERSION_{name} (\d+)", text)
        if not match:
            raise SystemExit(f"{_VERSION_HEADER}: FLYDSL_AOT_VERSION_{name} not found")
        part[name] = int(match.group(1))
    return part["MAJOR"] * 10000 + part["MINOR"] * 100 + part["PATCH"]


def files(archs):
    """{path relative to the output folder: text} of everything that is generated."""
    result = {"include/flydsl_aot_generated/abi.h": headers.abi_header(OPERATORS)}
    for op in OPERATORS:
        result[f"include/flydsl_aot_generated/{op.name}_kernarg.h"] = headers.kernarg_header(op)
    result.update(recipes.files(OPERATORS))
    for arch in archs:
        for op in OPERATORS:
            for instance in op.instances(arch):
                result[f"{arch}/{instances.source_path(op, instance)}"] = instances.source(op, instance)
        result[f"{arch}/manifest.json"] = manifest.manifest(OPERATORS, arch, library_version())
        result[f"{arch}/kernels.cmake"] = build_rules.rules(OPERATORS, arch)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", action="append", default=[], help="may be repeated")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    arguments = parser.parse_args()
    for arch in arguments.arch:
        if not any(op.instances(arch) for op in OPERATORS):
            raise SystemExit(f"--arch {arch}: no operator describes a kernel for it")
    for path, text in files(arguments.arch).items():
        write_if_changed(arguments.out / path, text)


if __name__ == "__main__":
    main()
