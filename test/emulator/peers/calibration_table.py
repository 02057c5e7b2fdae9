#!/usr/bin/env python3
"""The calibration as docs/timing-model.md shows it, and the bounds that it has to keep.

usage: flydsl-aot bench calibration --json | calibration_table.py DOCUMENT     writes the table between the document's two markers
       calibration_table.py --check TOOL DOCUMENT     runs the calibration: its bounds, and whether the document shows its figures
"""
import json
import os
import pathlib
import re
import subprocess
import sys

BEGIN, END = "<!-- calibration: generated, see test/emulator/peers/calibration_table.py -->", "<!-- calibration: end -->"
MEAN, WORST = 0.10, 0.20  # of the held-out cases with at least 2048 rows
SHOWN = 0.01  # by which a figure in the document may differ from the model's


def share(x):
    return f"{100 * x:+.1f} %"


def table(calibration):
    constants, errors = calibration["constants_hash"], calibration["errors"]
    lines = [f"`flydsl-aot bench calibration`; modelled, constants `{constants}`; TFLOP/s", "",
             "| case | | published | modelled | error | LDS 128 | LDS 256 |", "|---|---|---|---|---|---|---|"]
    for case in calibration["cases"]:
        side = "fitted" if case["fitted"] else "held out" if case["judged"] else "held out, short"
        lines.append(f"| `{case['name']}` | {side} | {case['published']:.0f} | {case['modelled']:.0f} | {share(case['error'])} | "
                     f"{case['lds_128']:.0f} | {case['lds_256']:.0f} |")
    lines += ["", "| cases | number | mean absolute error | worst |", "|---|---|---|---|"]
    for key, name in (("fitted", "fitted"), ("held_out", "held out, N (M, N, K) of 2048 and more"), ("held_out_short", "held out, shorter")):
        e = errors[key]
        lines.append(f"| {name} | {e['cases']} | {100 * e['mean']:.1f} % | {100 * e['worst']:.1f} % |")
    return "\n".join(lines)


def parts(document):
    before, rest = document.read_text().split(BEGIN)
    shown, after = rest.split(END)
    return before, shown.strip(), after


def check(tool, document):
    if os.environ.get("FLYDSL_AOT_SKIP_PEERS") == "1":
        print("skipped: FLYDSL_AOT_SKIP_PEERS=1")
        return 77
    calibration = json.loads(subprocess.run([tool, "bench", "calibration", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    print(table(calibration))
    wrong = []
    held_out = calibration["errors"]["held_out"]
    if held_out["mean"] >= MEAN or held_out["worst"] >= WORST:
        wrong.append(f"held-out errors {held_out} are not below a mean of {MEAN} and a worst of {WORST}")
    if 2 * sum(case["fitted"] for case in calibration["cases"]) > len(calibration["cases"]):
        wrong.append("more than half of the cases are fitted")
    shown = parts(document)[1]
    figures = {name: float(modelled) for name, modelled in re.findall(r"^\| `(\S+)` \| [^|]+ \| \d+ \| (\d+) \|", shown, re.MULTILINE)}
    close = figures.keys() == {case["name"] for case in calibration["cases"]} and all(
        abs(figures[case["name"]] / case["modelled"] - 1) < SHOWN for case in calibration["cases"])
    if f"constants `{calibration['constants_hash']}`" not in shown or not close:
        wrong.append(f"{document} shows other figures; write them: {tool} bench calibration --json | {sys.argv[0]} {document}")
    print("\n".join(wrong))
    return 1 if wrong else 0


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(sys.argv[2], pathlib.Path(sys.argv[3]))
    document = pathlib.Path(sys.argv[1])
    before, _, after = parts(document)
    document.write_text(f"{before}{BEGIN}\n{table(json.load(sys.stdin))}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
