#!/usr/bin/env python3
"""Writes the generated part of docs/benchmarks/OPERATOR.md: our kernels and others' on one list of problems, in the timing model.

usage: benchmark_table.py --tool build/bin/flydsl-aot --objects build/peers [--only REGEX] [--cache FILE] [--jobs N] [--everywhere] DOCUMENT...
       benchmark_table.py --check DOCUMENT...

The problems are in benchmarks/OPERATOR.txt. The kernels of others: fetch.sh DIR FAMILY for those of FAMILIES below. What was run
is kept in the cache file (default: DIR/benchmarks.json) and run again when the library, the kernels or the list change, so that
an interrupted sweep goes on. --only runs the sections that match and prints the tables; no document is written. --everywhere tries every
configuration on every case. --check runs nothing: whether the documents show the problems of the lists.
"""
import argparse
import itertools
import math
import os
import pathlib
import re
import sys

from modelled.benchmarks import HERE, HYPOTHESES, PEERS, PRODUCTS, Runs, read_cases

BEGIN, END = "<!-- benchmarks: generated, see test/emulator/peers/benchmark_table.py -->", "<!-- benchmarks: end -->"
HBM_BYTES_PER_S = 8e12
MFMA_FLOPS_PER_S = {16: 2.5e15, 8: 5e15, 4: 10e15}  # dense, by bits of an operand
TITLES = {"aiter": "AITER", "triton": "Triton", "triton_widen": "Triton, V as bf16", "flydsl": "FlyDSL"}
TRITON = {"attention_forward": ("triton_attention", "triton_features"), "attention_decode": ("triton_attention",),
          "attention_backward": ("triton_backward",)} | dict.fromkeys(PRODUCTS, ("triton_gemm", "flydsl"))
FAMILIES = {operator: ("aiter", "triton_attention", *(f"{family}_sweep" for family in found), *found) for operator, found in TRITON.items()}
SOURCES = {"attention_forward": "`triton_attention.py` and `triton_features.py`", "attention_decode": "`triton_decode.py`",
           "attention_backward": "`triton_backward.py`"} | dict.fromkeys(PRODUCTS, "`triton_gemm.py`")


def versions(operator):
    pinned = dict(re.findall(r"^(\w+)_version=(\S+)", (HERE / "fetch.sh").read_text(), re.MULTILINE))
    flydsl = f" FlyDSL: PyTorch's kernels (wheel `torch` {pinned['torch']}) by FlyDSL {pinned['flydsl']}, the fastest of those that PyTorch tries by default."
    return (f"AITER: assembly of wheel `amd-aiter` {pinned['aiter']}. Triton: {SOURCES[operator]} of `test/emulator/peers/fetch`, "
            f"compiled by Triton {pinned['triton']}, the fastest of all configurations." + (flydsl if operator in PRODUCTS else ""))


def sizes(case):
    """The problem in words."""
    if case.operator in PRODUCTS:
        return case.title
    batch, heads, rows, _ = case.shape("q")
    settings = case.settings
    _, heads_kv, keys, _ = case.shape("k")
    words = [f"B {batch}", f"H {heads}" + (f"/{heads_kv}" if heads_kv != heads else "")]
    if "block_table" in settings:
        keys *= case.shape("block_table")[1]
        words.append("paged")
    words.append(f"S {rows}" if rows == keys else f"Sk {keys}")
    shown = {"q", "k", "v", "v_in_k", "block_table", "seqused_k", "out", "dout", "lse"}
    if settings.get("causal") == "none":
        shown.add("causal")
    return ", ".join(words + [f"{name} {value}" for name, value in settings.items() if name not in shown])


def cache_bytes(problem, shared):
    """Of K and V, which decode has to read; V that lies in K (`shared`) counts once."""
    size = 1 if problem["kv_dtype"].startswith("e") else 2
    keys = sum(map(int, problem["seqused_k"].split(","))) if problem["seqused_k"] else int(problem["batch"]) * int(problem["seqlen_k"])
    dims = int(problem["head_dim"]) + (0 if shared else int(problem["head_dim_v"]))
    return keys * int(problem["heads_kv"]) * dims * size


def main_kernels(operator, our):
    """The launches that are not there for others."""
    launches = our.get("launches", [our["kernel"]])
    return [name for name in launches if not name.endswith(("_prepare", "_convert"))] if operator == "attention_backward" else launches[:1]


def columns(operator, case):
    """Titles of the figures beside our time, and what works them out of our run and its seconds."""
    if operator == "attention_decode":
        return ("of 8 TB/s",), lambda our, seconds: (
            f"{100 * cache_bytes(our['problem'], 'v_in_k' in case.settings) / seconds / HBM_BYTES_PER_S:.0f} %",)
    if operator not in PRODUCTS:
        return ("TFLOP/s",), lambda our, seconds: (f"{our['problem_flops'] / seconds * 1e-12:.0f}",)
    return ("TFLOP/s", "of MFMA", "TB/s, of 8"), lambda our, seconds: (
        f"{our['problem_flops'] / seconds * 1e-12:.0f}", f"{our['problem_flops'] / seconds / MFMA_FLOPS_PER_S[case.bits]:.2f}",
        f"{case.bytes / seconds * 1e-12:.1f}, {case.bytes / seconds / HBM_BYTES_PER_S:.2f}")


def us(seconds):
    return f"{seconds * 1e6:.1f}" if seconds < 1e-3 else f"{seconds * 1e6:.0f}"


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(operator, cases, runs):
    """Lines of a section."""
    peers = cases[0].peers
    head = ["problem", "kernel"] + [column for h in HYPOTHESES for column in
                                    (f"{h}: us", *columns(operator, cases[0])[0], *(TITLES[name] for name in peers))]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for case in cases:  # whose fastest configurations the others try
        if case.swept and "refused" not in (our := runs.our(operator, case)):
            for name in peers:
                runs.peer(operator, case, name, our["problem"])
    ratios, hashes, choices = {name: {h: [] for h in HYPOTHESES} for name in peers}, set(), {name: set() for name in peers}
    for case in cases:
        our = runs.our(operator, case)
        if "refused" in our:
            lines.append(f"| {sizes(case)} | refused |" + " |" * (len(head) - 2))
            continue
        hashes.add(our["constants_hash"])
        found = {name: runs.peer(operator, case, name, our["problem"]) for name in peers}
        row = [sizes(case), ", ".join(f"`{kernel.removeprefix(operator + '_')}`" for kernel in main_kernels(operator, our))]
        for h in HYPOTHESES:
            seconds = our["seconds"][h]
            row += [us(seconds), *columns(operator, case)[1](our, seconds)]
            for name in peers:
                if "refused" in found[name]:
                    row.append("-")
                    continue
                best = found[name]["lds_hypotheses"][h]
                hashes.add(found[name]["constants_hash"])
                ratios[name][h].append(best["seconds"] / seconds)
                choices[name].update(best["kernel"].split(" + "))
                row.append(f"{us(best['seconds'])}, {ratios[name][h][-1]:.2f}x")
        lines.append("| " + " | ".join(row) + " |")
    for name in peers:
        if ratios[name][HYPOTHESES[0]]:
            lines.append("")
            lines.append(f"{TITLES[name]} over ours: " + "; ".join(
                f"{h} bytes a clock {min(r):.2f} to {max(r):.2f}, geometric mean {geometric_mean(r):.2f}" for h, r in ratios[name].items()) + ".")
            if PEERS[name][0] in ("triton", "flydsl"):
                lines.append("Fastest: " + ", ".join(f"`{choice}`" for choice in sorted(choices[name])) + ".")
    return lines, hashes


def generated(operator, cases, runs):
    lines, hashes = [], set()
    for section in dict.fromkeys(case.section for case in cases):
        part, seen = table(operator, [case for case in cases if case.section == section], runs)
        lines += ["", f"### {section}", "", *part]
        hashes |= seen
    if len(hashes) != 1:
        sys.exit(f"modelled with different constants: {sorted(hashes)}")
    top = (f"Modelled, constants `{hashes.pop()}`, LDS of {' or '.join(HYPOTHESES)} bytes a clock; microseconds, and the other's time over ours as \"x\". "
           f"{versions(operator)}")
    return [top, *lines]


def check(document):
    """Whether its tables are of the problems in the list."""
    shown = document.read_text().split(BEGIN)[1].split(END)[0]
    found = [line.split("|")[1].strip() if line.startswith("|") else line.removeprefix("### ") for line in shown.splitlines()
             if line.startswith("### ") or (line.startswith("| ") and not line.startswith("| problem"))]
    wanted = []
    cases = read_cases(HERE / "benchmarks" / f"{document.stem}.txt")
    for section in dict.fromkeys(case.section for case in cases):
        wanted += [section, *(sizes(case) for case in cases if case.section == section)]
    for a, b in itertools.zip_longest(found, wanted):
        if a != b:
            print(f"{document} shows '{a}' where the list has '{b}'; make the tables again: {sys.argv[0]} without --check")
            return False
    return True


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--tool")
    parser.add_argument("--objects", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--only", help="regular expression on the sections' titles")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--everywhere", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.check:
        return 0 if all([check(document) for document in options.documents]) else 1
    if not options.tool or not options.objects:
        parser.error("--tool and --objects, or --check")
    for family in dict.fromkeys(family for document in options.documents for family in FAMILIES[document.stem]):
        if not (options.objects / f"{family}.stamp").is_file():
            sys.exit(f"no {family} kernels in {options.objects}; get them: test/emulator/peers/fetch.sh {options.objects} {family}")
    runs = Runs(options.tool, options.objects, options.cache or options.objects / "benchmarks.json", options.jobs, options.everywhere)
    for document in options.documents:
        operator = document.stem
        cases = [case for case in read_cases(HERE / "benchmarks" / f"{operator}.txt") if re.search(options.only or "", case.section)]
        if options.only:
            print("\n".join(generated(operator, cases, runs)) if cases else f"{operator}: no section matches")
            continue
        before, rest = document.read_text().split(BEGIN)
        text = "\n".join(generated(operator, cases, runs))
        document.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
