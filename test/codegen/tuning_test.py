"""Tuning files: what the check refuses, what goes into the manifest; and how well the tables that are there foretell a row they lack."""

import copy
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

from generate import layout, tuning  # noqa: E402

ARCH = "gfx950"
OP = tuning.operator_named("gemm")
A, B, C = sorted(tuning.kernel_names(OP, ARCH))[:3]


def row(**changes):
    value = {
        "case": "a=64x64 b=64x64",
        "compute_units": 256,
        "default": A,
        "figures_us": {A: 2.0, B: 1.5, C: 3},
        "key": {field.name: 0 for field in OP.key_fields},
        "origin": "model:0123",
        "problem": {"alignment": 16, "keys": 64, "parallel": 64, "rows": 64},
        "runner_up": A,
        "winner": B,
    }
    value.update(changes)
    return value


def line_of(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class TuningFiles(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        (self.folder / ARCH).mkdir()
        self.path = self.folder / ARCH / "gemm.jsonl"

    def write(self, *rows):
        lines = sorted(line if isinstance(line, str) else line_of(line) for line in rows)
        self.path.write_text("".join(line + "\n" for line in lines))

    def refused(self, words, *rows):
        self.write(*rows)
        with self.assertRaises(tuning.TuningError) as caught:
            tuning.manifest_rows(OP, ARCH, self.folder)
        self.assertIn(words, str(caught.exception))
        self.assertRegex(str(caught.exception), r"gemm\.jsonl:\d+: ")

    def test_rows_become_the_manifests(self):
        other = row(case="a=65x64 b=64x64", problem={"alignment": 8, "keys": 64, "parallel": 64, "rows": 65}, figures_us={A: 0.0004},
                    winner=A, runner_up=None)
        self.write(row(), other)
        (table,) = tuning.manifest_rows(OP, ARCH, self.folder)
        self.assertEqual((table["op"], table["key"]), ("gemm", layout.hex64(0)))
        self.assertEqual(table["rows"][0], {"kernel": B, "rows": 64, "keys": 64, "parallel": 64, "alignment": 16,
                                            "compute_units": 256, "figure_ns": 1500, "origin": "model:0123"})
        self.assertEqual((table["rows"][1]["kernel"], table["rows"][1]["figure_ns"]), ("", 1))
        self.assertEqual(tuning.manifest_rows(OP, "gfx942", self.folder), [])
        # The same problem twice, with the same answer, is one row.
        self.write(row(), row(case="the same in other words"))
        self.assertEqual(len(tuning.manifest_rows(OP, ARCH, self.folder)[0]["rows"]), 1)

    def test_malformed_rows(self):
        for line in ("", "{", "[]", "1", line_of(row())[:-1], line_of({**row(), "more": 1})):
            self.refused("is no object with just the fields", line)
        without = row()
        del without["origin"]
        self.refused("is no object with just", without)
        self.refused("'default' is of another type", row(default=1))
        self.refused("'compute_units' is of another type", row(compute_units=True))
        self.refused("'compute_units' is no number", row(compute_units=0))
        for problem in ({}, {**row()["problem"], "rows": -1}, {**row()["problem"], "rows": 1.5}, {**row()["problem"], "x": 1}):
            self.refused("'problem' is no object", row(problem=problem))
        self.refused("no power of two", row(problem={**row()["problem"], "alignment": 12}))
        for figures in ({}, {A: 0, B: 1}, {A: -1, B: 1}, {A: "2", B: 1}, {A: 1e13, B: 1}):
            self.refused("holds no times", row(figures_us=figures))
        for origin in ("", "guess", "hip:", "cuda:", "CUDA:x", "model:\n"):
            self.refused("'origin' is not", row(origin=origin))

    def test_lines_of_any_bytes(self):
        """Each change of a sound line is refused with file and line, or leaves rows that are sound, too."""
        sound = line_of(row()).encode()
        values = [b"null", b"-1", b"1e999", b"NaN", b"9" * 5000, b"true", b'"\\ud800"', b"{}", b"[" * 100000, b"\xff", b"\0", b"\r", b""]
        generator = random.Random(7)
        refused = 0
        for turn in range(3000):
            line = bytearray(sound)
            for _ in range(generator.choice((1, 1, 2, 5))):
                at = generator.randrange(len(line))
                if generator.random() < 0.5:
                    line[at] = generator.randrange(256)
                else:
                    line[at:at + generator.choice((0, 1, 8))] = generator.choice(values)
            self.path.write_bytes(bytes(line) + b"\n")
            try:
                tuning.manifest_rows(OP, ARCH, self.folder)
            except tuning.TuningError as error:
                self.assertRegex(str(error), r"gemm\.jsonl:\d+: ", turn)
                refused += 1
        self.assertGreater(refused, 2000)
        self.assertLess(refused, 3000)

    def test_contradictions(self):
        self.refused("slower than another", row(winner=A, runner_up=B))
        self.refused("is not the second fastest", row(runner_up=C))
        self.refused("is not the second fastest", row(runner_up=B))
        self.refused("'runner_up' is null", row(runner_up=None))
        self.refused("names one where there is none", row(figures_us={A: 1}, winner=A, runner_up=A))
        self.refused("'winner' is 'x', which has no figure", row(winner="x"))
        self.refused(f"contradicts a row of the same problem whose winner is '{B}'", row(),
                     row(case="z", figures_us={A: 1.0, B: 2.0}, winner=A, runner_up=B))
        line = line_of(row())
        self.path.write_text(f"{line}\n{line}\n")
        with self.assertRaisesRegex(tuning.TuningError, "is not after the line before"):
            tuning.manifest_rows(OP, ARCH, self.folder)

    def test_figures_of_one_origin(self):
        other = row(case="b", problem={"alignment": 16, "keys": 64, "parallel": 64, "rows": 65})
        for origin in ("cuda:NVIDIA H200", "hip:AMD Instinct MI355X", "heuristic"):
            self.write(row(origin=origin), {**other, "origin": origin})
            self.assertEqual({r["origin"] for r in tuning.manifest_rows(OP, ARCH, self.folder)[0]["rows"]}, {origin})
            self.refused(f"is of another origin than the rows before it, '{row()['origin']}'", row(), {**other, "origin": origin})

    def test_stale_rows(self):
        self.refused("is stale: gemm has no kernel 'gone'", row(figures_us={A: 2.0, B: 1.5, "gone": 9}))
        key = {**row()["key"], "gone": 0}
        self.refused("is stale: the key of gemm has the fields", row(key=key))
        first = OP.key_fields[0]
        self.refused(f"key field '{first.name}' does not fit", row(key={**row()["key"], first.name: 1 << first.bits}))

    def test_the_check_is_a_program(self):
        program = support.CODEGEN / "generate/tuning.py"

        def run(*files):
            return subprocess.run([sys.executable, "-B", program, *files], capture_output=True, text=True, check=False)

        self.write(row())
        self.assertEqual(run(self.path).stdout, f"{self.path}: 1 rows, no fault\n")
        self.write("{")
        result = run(self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("gemm.jsonl:1: ", result.stderr)
        self.assertNotEqual(run(self.folder / "nothing.jsonl").returncode, 0)


# ---- the nearest-row rule of docs/archive-format.md once more, to foretell each row from the others of its table


def place(number):
    return 2 * math.log2(number) if number else 0.0


def axes(entry):
    problem = entry["problem"]
    return (problem["rows"], problem["keys"], problem["parallel"] * 256 / entry["compute_units"], min(problem["alignment"], 256))


def coordinate(number):
    number = math.floor(number)
    if number == 0:
        return 0
    octave = number.bit_length() - 1
    leading = number >> octave - 8 if octave >= 8 else number << 8 - octave
    return 2 * octave + (leading > 304) + (leading > 430)


def foretold(entry, others):
    """The kernel that a table of the others has for the problem; None without a table, and for the first that fits."""
    if not others:
        return None
    boxes = [[coordinate(axes(other)[axis]) for other in others] for axis in range(4)]
    cell = [min(max(coordinate(axes(entry)[axis]), min(boxes[axis])), max(boxes[axis])) for axis in range(4)]

    def distance(other):
        return sum(((place(axes(other)[axis]) - cell[axis]) * (4 if axis == 3 else 1)) ** 2 for axis in range(4))

    nearest = min(others, key=distance)
    return None if nearest["winner"] == nearest["default"] else nearest["winner"]


def losses(rows):
    """How much longer each problem takes if its own row is left out."""
    for entry in rows:
        others = [other for other in rows if other is not entry and other["key"] == entry["key"]]
        kernel = foretold(entry, others)
        # A kernel without a figure is one that does not fit there, and selection goes on without the row.
        figures = entry["figures_us"]
        yield figures[kernel if kernel in figures else entry["default"]] / figures[entry["winner"]] - 1


# Distinct problems that gfx950's tables have at least, of these operators together.
LEAST_ROWS = (
    (300, ("attention_forward",)),
    (150, ("attention_backward",)),
    (150, ("gemm", "grouped_gemm", "scaled_gemm")),
    (60, ("rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward", "topk", "topk_softmax")),
)


class Tables(unittest.TestCase):
    def test_a_row_that_is_left_out_is_foretold(self):
        tables = sorted(tuning.FOLDER.glob("*/*.jsonl"))
        self.assertIn(ARCH, {path.parent.name for path in tables})
        for path in tables:
            arch, op = path.parent.name, tuning.operator_named(path.stem)
            with self.subTest(arch=arch, op=path.stem):
                self.assertIsNotNone(op, path)
                rows = tuning.read_rows(path, op, tuning.kernel_names(op, arch))
                lost = sorted(losses(rows))
                print(f"{arch} {op.name}: {len(rows)} rows, left out one by one: median loss {statistics.median(lost):.2%}, worst {lost[-1]:.2%}")
                self.assertLess(statistics.median(lost), 0.05)
                self.assertLess(lost[-1], 0.20)

    def test_there_are_as_many_as_cover_the_keys(self):
        for least, names in LEAST_ROWS:
            problems = 0
            for name in names:
                rows = tuning.manifest_rows(tuning.operator_named(name), ARCH)
                problems += sum(len(table["rows"]) for table in rows)
            with self.subTest(operators=names):
                self.assertGreaterEqual(problems, least)

    def test_what_is_foretold(self):
        near = row(problem={"alignment": 16, "keys": 64, "parallel": 64, "rows": 80})
        far = row(problem={"alignment": 16, "keys": 64, "parallel": 64, "rows": 640}, figures_us={A: 1.0, B: 2.0}, winner=A, runner_up=B)
        self.assertEqual(foretold(row(), [near, far]), B)
        self.assertIsNone(foretold(row(), [far]))  # whose winner is the first that fits
        self.assertIsNone(foretold(row(), []))
        lost = list(losses([row(), copy.deepcopy(far)]))
        self.assertAlmostEqual(lost[0], 2 / 1.5 - 1)
        self.assertAlmostEqual(lost[1], 1.0)
        self.assertEqual([coordinate(n) for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 4095, 4096, 4870, 4880, 6881, 6900)],
                         [0, 0, 2, 3, 4, 5, 5, 6, 6, 24, 24, 24, 25, 25, 26])


if __name__ == "__main__":
    unittest.main()
