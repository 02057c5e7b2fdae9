"""Writes everything generated: headers, instance sources, manifests and build rules.

usage: python3 codegen/generate/main.py --arch gfx950 [--arch ...] [--portable] --out build/generated
"""

import argparse
import dataclasses
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


def files(archs, operators=OPERATORS):
    """{path relative to the output folder: text} of everything that is generated."""
    result = {"include/flydsl_aot_generated/abi.h": headers.abi_header(operators)}
    for op in operators:
        result[f"include/flydsl_aot_generated/{op.name}_kernarg.h"] = headers.kernarg_header(op)
    result.update(recipes.files(operators))
    for arch in archs:
        for op in operators:
            for instance in op.instances(arch):
                result[f"{arch}/{instances.source_path(op, instance)}"] = instances.source(op, instance)
        result[f"{arch}/manifest.json"] = manifest.manifest(operators, arch, library_version(), tuned=operators is OPERATORS)
        result[f"{arch}/kernels.cmake"] = build_rules.rules(operators, arch)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", action="append", default=[], help="may be repeated")
    parser.add_argument("--portable", action="store_true", help="portable instances only, in place of an architecture's own")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    arguments = parser.parse_args()
    operators = OPERATORS
    if arguments.portable:
        operators = tuple(dataclasses.replace(op, instances=op.portable) for op in OPERATORS)
    for arch in arguments.arch:
        if not any(op.instances(arch) for op in operators):
            raise SystemExit(f"--arch {arch}: no operator describes a kernel for it")
    for path, text in files(arguments.arch, operators).items():
        write_if_changed(arguments.out / path, text)


if __name__ == "__main__":
    main()
