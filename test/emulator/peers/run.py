#!/usr/bin/env python3
"""Runs third-party kernels on a HIP library and judges them against float64. One line a family, then failures, then counts.

usage: run.py --library libflydsl_emu.so --objects DIR [--only REGEX] [--verbose] [--timeout S] [--checks] aiter|triton|triton_attention|flydsl...
Exit status: 0 as expected, 1 not, 77 skipped (FLYDSL_AOT_SKIP_PEERS=1).
"""
import argparse
import importlib
import os
import pathlib
import re
import sys

from launch import environment

HERE = pathlib.Path(__file__).resolve().parent
MODULES = {"aiter": ("aiter_forward", "aiter_backward", "aiter_gemm", "aiter_mla"), "triton": ("triton_objects",),
           "triton_attention": ("triton_attention",), "triton_features": ("triton_features",), "triton_backward": ("triton_backward",), "triton_gemm": ("triton_gemm",),
           "flydsl": ("flydsl_objects",)}


def collect(objects, family):
    for name in MODULES[family]:
        yield from importlib.import_module(f"recipes.{name}").recipes(objects / family)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--objects", required=True, type=pathlib.Path, help="the DIR of fetch.sh")
    parser.add_argument("--only", default="", help="regular expression on the recipe's name")
    parser.add_argument("--verbose", action="store_true", help="every recipe with its errors or its whole output")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a recipe")
    parser.add_argument("--checks", action="store_true", help="judge what the emulator's checks report (expected_reports.txt)")
    parser.add_argument("families", nargs="+", choices=MODULES)
    options = parser.parse_args()
    environment.enter(options.objects)
    if not pathlib.Path(options.library).is_file():
        parser.error(f"no library {options.library}")
    from launch import runner

    recipes = [r for family in options.families for r in collect(options.objects, family) if re.search(options.only, r.name)]
    if options.checks:
        # One thread: which of two work-groups a race is found in does not depend on the host.
        os.environ |= dict(FLYDSL_EMU_CHECKS="all", FLYDSL_EMU_CHECKS_WARN="1", FLYDSL_EMU_THREADS="1")
    outcomes = []
    for recipe in recipes:
        outcomes.append(runner.run_one(recipe, options.library, options.timeout))
        if options.verbose:
            print(f"{outcomes[-1].state} {recipe.name} {outcomes[-1].seconds:.2f} s\n{outcomes[-1].text}", flush=True)
    expected = runner.read_expected(HERE / ("expected_reports.txt" if options.checks else "expected_failures.txt"))
    chosen = {name: reason for name, reason in expected.items() if name.split("/")[0] in options.families and re.search(options.only, name)}
    lines, good = (runner.verdict_on_reports if options.checks else runner.verdict)(outcomes, chosen)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
