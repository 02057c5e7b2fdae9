"""tuning/<arch>/<operator>.jsonl: reading, checking, and what of it goes into the manifest (tuning/README.md has the schema).

usage: python3 codegen/generate/tuning.py FILE...    checks the files; their folders and names say architecture and operator
"""

import json
import math
import re
import sys
from pathlib import Path

if not __package__:  # run as a program: packages are found from codegen/, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from describe.registry import OPERATORS  # noqa: E402
from generate.layout import hex64, pack_key  # noqa: E402

FOLDER = Path(__file__).resolve().parents[2] / "tuning"
_FIELDS = {
    "case": str,
    "compute_units": int,
    "default": str,
    "figures_us": dict,
    "key": dict,
    "origin": str,
    "problem": dict,
    "runner_up": (str, type(None)),
    "winner": str,
}
_PROBLEM = ("alignment", "keys", "parallel", "rows")
_ORIGIN = re.compile(r"(cuda|hip|model):[ -~]+|heuristic")


class TuningError(Exception):
    """What is wrong, with file and line."""


def _is_number(value, least):
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 63


def _check_shape(row):
    if not isinstance(row, dict) or set(row) != set(_FIELDS):
        return f"is no object with just the fields {', '.join(sorted(_FIELDS))}"
    for name, kind in _FIELDS.items():
        if not isinstance(row[name], kind) or isinstance(row[name], bool):
            return f"field '{name}' is of another type"
    if not _is_number(row["compute_units"], 1):
        return "field 'compute_units' is no number from 1 up"
    if set(row["problem"]) != set(_PROBLEM) or not all(_is_number(value, 0) for value in row["problem"].values()):
        return f"field 'problem' is no object with the numbers {', '.join(_PROBLEM)}"
    alignment = row["problem"]["alignment"]
    if alignment < 1 or alignment & (alignment - 1):
        return "field 'problem': the alignment is no power of two"
    figures = row["figures_us"].values()
    if not figures or not all(isinstance(f, (int, float)) and not isinstance(f, bool) and 0 < f < 1e12 for f in figures):
        return "field 'figures_us' holds no times above 0"
    if not _ORIGIN.fullmatch(row["origin"]):
        return "field 'origin' is not cuda:DEVICE, hip:DEVICE, model:CONSTANTS or heuristic"
    return None


def _check_winner(row):
    figures = row["figures_us"]
    for name in ("winner", "default"):
        if row[name] not in figures:
            return f"field '{name}' is '{row[name]}', which has no figure"
    others = sorted(figure for name, figure in figures.items() if name != row["winner"])
    if others and others[0] < figures[row["winner"]]:
        return f"contradicts itself: the winner '{row['winner']}' is slower than another kernel"
    if (row["runner_up"] is None) != (not others):
        return "field 'runner_up' is null where there is another kernel, or names one where there is none"
    if others and (row["runner_up"] == row["winner"] or figures.get(row["runner_up"]) != others[0]):
        return f"contradicts itself: '{row['runner_up']}' is not the second fastest"
    return None


def _check_names(row, op, kernels):
    for name in row["figures_us"]:
        if name not in kernels:
            return f"is stale: {op.name} has no kernel '{name}'"
    if set(row["key"]) != {field.name for field in op.key_fields}:
        return f"is stale: the key of {op.name} has the fields {', '.join(field.name for field in op.key_fields)}"
    for field in op.key_fields:
        if not _is_number(row["key"][field.name], 0) or row["key"][field.name] >= 1 << field.bits:
            return f"key field '{field.name}' does not fit {field.bits} bits"
    return None


def identity(row):
    """What a row is about; two rows that agree in it must agree in the winner."""
    return json.dumps([row["key"], row["problem"], row["compute_units"]], sort_keys=True)


def read_rows(path, op, kernels):
    """The rows of a file, checked. `kernels`: names of the operator's kernels."""
    rows, winners, before = [], {}, b""
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError):
            row = None
        fault = _check_shape(row) or _check_winner(row) or _check_names(row, op, kernels)
        if not fault and line <= before:
            fault = "is not after the line before it (LC_ALL=C sort -u)"
        if not fault and winners.setdefault(identity(row), row["winner"]) != row["winner"]:
            fault = f"contradicts a row of the same problem whose winner is '{winners[identity(row)]}'"
        if not fault and rows and row["origin"] != rows[0]["origin"]:
            fault = f"is of another origin than the rows before it, '{rows[0]['origin']}'"
        if fault:
            raise TuningError(f"{path}:{number}: {fault}")
        rows.append(row)
        before = line
    return rows


def kernel_names(op, arch):
    return {instance.name for instance in op.instances(arch)}


def operator_named(name):
    return next((op for op in OPERATORS if op.name == name), None)


def manifest_rows(op, arch, folder=FOLDER):
    """[{"op", "key", "rows"}] of the manifest; empty without a file."""
    path = folder / arch / f"{op.name}.jsonl"
    if not path.exists():
        return []
    by_key = {}
    for row in read_rows(path, op, kernel_names(op, arch)):
        by_key.setdefault(pack_key(op, row["key"]), {})[identity(row)] = row
    return [
        {
            "op": op.name,
            "key": hex64(key),
            "rows": [
                {
                    # What is taken without tuning is the first that fits, of a problem nearby maybe another one.
                    "kernel": "" if row["winner"] == row["default"] else row["winner"],
                    "rows": row["problem"]["rows"],
                    "keys": row["problem"]["keys"],
                    "parallel": row["problem"]["parallel"],
                    "alignment": row["problem"]["alignment"],
                    "compute_units": row["compute_units"],
                    "figure_ns": max(1, math.floor(row["figures_us"][row["winner"]] * 1000)),
                    "origin": row["origin"],
                }
                for row in rows.values()
            ],
        }
        for key, rows in sorted(by_key.items())
    ]


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for name in sys.argv[1:]:
        path = Path(name)
        op, arch = operator_named(path.stem), path.resolve().parent.name
        if not op:
            raise SystemExit(f"{path}: '{path.stem}' is no operator")
        try:
            rows = read_rows(path, op, kernel_names(op, arch))
        except (TuningError, OSError) as error:
            raise SystemExit(str(error))
        print(f"{path}: {len(rows)} rows, no fault")


if __name__ == "__main__":
    main()
