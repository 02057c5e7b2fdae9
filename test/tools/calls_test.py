"""The calls of an operator's own cases (OPERATOR), as FLYDSL_AOT_VERBOSE records them: what explain says of each, held to the archive as
archive_format/reader.py reads it, and that each replays to the kernels it had, with any of them forced."""
import collections
import csv
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from tool import ARCHIVE, TOOL, ToolTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "codegen"), str(ROOT / "test" / "tools" / "archive_format")]
import reader
from describe.registry import OPERATORS
from generate.layout import abi_id

OPERATOR = os.environ["OPERATOR"]
MOST_ALIGNMENT = 256  # that is told apart
MOST_MACS = 1 << 27  # of a product, multiply-adds
FIELDS = {field.name: field for op in OPERATORS if op.name == OPERATOR for field in op.key_fields}
CANDIDATE = re.compile(r"(taken|not-taken) +(\S+) \((\w+)\): (.*)")
# What a candidate that could run is not taken for, besides another that is; the operators say it themselves.
OTHER_WAYS = {"several kernels compute dq, dk and dv", "one kernel computes dq, dk and dv", "one kernel reads rows once", "two kernels read rows twice",
              "the nearest tuning row is of a kernel for another pass"}
Line = collections.namedtuple("Line", "taken kernel backend reason")


class CallsTest(ToolTest):
    timeout_s = 500

    @classmethod
    def setUpClass(cls):
        content = ARCHIVE.read_bytes()
        cls.archive = reader.Archive(content, abi_id(OPERATORS))
        cls.entries = {name: entry for name, entry in zip(cls.archive.names, cls.archive.entries)}
        cls.slots = {slot.functional_key: cls.archive.candidates[slot.first:slot.first + slot.count]
                     for slot in cls.archive.slots if slot.count and cls.archive.string(slot.op) == OPERATOR}

        cls.recorded = cls.record()

    @classmethod
    def cases(cls, folder):
        """The operator's list without large products (verify_<operator>_smoke has them, here most would be time) and without the kernels that
        its lines name: those are the ones without tuning."""
        def macs(line):
            sizes = dict(re.findall(r"\b(batch|m|n|k)=(\d+)\b", line))
            return math.prod(map(int, sizes.values())) if {"m", "n", "k"} <= set(sizes) else 0
        lines = (ROOT / "test" / "cases" / f"{OPERATOR}.txt").read_text().splitlines()
        path = folder / "cases.txt"
        path.write_text("".join(re.sub(r" kernel=\S*", "", line) + "\n" for line in lines if macs(line) <= MOST_MACS))
        return path

    @classmethod
    def record(cls):
        """One row of each call: cases repeat some."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "calls.csv"
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("FLYDSL_AOT_", "FLYDSL_EMU_"))}
            result = subprocess.run([TOOL, "verify", OPERATOR, "--device", "emulator", "--suite", "smoke", "--cases", cls.cases(pathlib.Path(folder))],
                                    capture_output=True, text=True, env=environment | {"FLYDSL_AOT_VERBOSE": str(log)}, check=False)
            assert result.returncode == 0, result.stdout + result.stderr
            with open(log, newline="") as stream:
                rows = [row for row in csv.reader(stream) if row[1] == OPERATOR]
        assert len(rows) > 5, rows
        return list({row[2]: row for row in rows}.values())

    def setUp(self):
        super().setUp()
        self.rows, self.launching = self.recorded, [row for row in self.recorded if row[3]]
        self.log = self.write(self.folder / "calls.csv", self.rows)

    def one_call(self):
        return self.write(self.folder / "one.csv", self.launching[:1])

    def rows_of(self, log):
        with open(log, newline="") as stream:
            header, *rows = csv.reader(stream)
        self.assertEqual(len(header), 8)
        return rows

    def write(self, log, rows):
        with open(log, "w", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([["time", "operator", "problem", "kernel", "backend", "archive", "tuning row", "host ns"]] + rows)
        return log

    def explain(self, log, *options, **environment):
        """For each row the groups of (what was looked up, its candidates)."""
        result = self.tool("explain", "--replay", log, "--arch", "gfx950", *options, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        calls = []
        for line in result.stdout.splitlines():
            if line.startswith("line "):
                calls.append([])
            elif line.startswith("problem "):
                problem = dict(pair.split("=") for pair in line.split()[1:])
                calls[-1].append(({name: int(value) for name, value in problem.items()}, []))
            elif match := CANDIDATE.fullmatch(line):
                calls[-1][-1][1].append(Line(match[1] == "taken", *match.groups()[1:]))
        return calls

    def test_explain(self):
        calls = self.explain(self.log)
        self.assertEqual(len(calls), len(self.rows))
        for row, groups in zip(self.rows, calls):
            with self.subTest(problem=row[2]):
                taken = {line.kernel for _, lines in groups for line in lines if line.taken}
                self.assertEqual(taken, set(filter(None, row[3].split("+"))))
                for problem, lines in groups:
                    self.assertEqual(problem["compute_units"], 256)
                    self.assertGreater(problem["alignment"], 0)
                    self.assertGreater(problem["parallel"], 0)
                    self.check_key(problem, lines)
                    for entries in self.by_key(lines):
                        self.check_complete(entries)
                    self.check_reasons(problem, lines)

    def check_key(self, problem, lines):
        """A field of the problem's is the kernels', or it is what tuning chooses (all ones), or kernels that do more leave it out."""
        for name, field in FIELDS.items():
            self.assertIn(name, problem)
            self.assertLess(problem[name], 1 << field.bits)

    def by_key(self, lines):
        groups = collections.defaultdict(list)
        for line in lines:
            groups[self.entries[line.kernel].functional_key].append(line)
        return groups.values()

    def check_complete(self, lines):
        """All that the archive lists for the key are told, in its order. (Passes of one call may look the same up.)"""
        candidates = self.slots[self.entries[lines[0].kernel].functional_key]
        listed = [self.archive.names[candidate.entry] for candidate in candidates]
        self.assertEqual([line.kernel for line in lines], listed * (len(lines) // len(listed)))

    def check_reasons(self, problem, lines):
        seen = collections.Counter()
        for index, line in enumerate(lines):
            self.assertEqual(line.backend, "native")
            candidates = [c for c in self.slots[self.entries[line.kernel].functional_key] if self.archive.names[c.entry] == line.kernel]
            limits = candidates[seen[line.kernel] % len(candidates)]
            seen[line.kernel] += 1
            reason, rows, keys, alignment = line.reason, problem["rows"], problem["keys"], problem["alignment"]
            fits = (limits.seq_q_min <= rows <= limits.seq_q_max and limits.seq_k_min <= keys <= limits.seq_k_max
                    and min(limits.align_bytes, MOST_ALIGNMENT) <= alignment)
            before = lines[:index]
            if match := re.fullmatch(r"needs base addresses and strides that are multiples of (\d+) bytes; these are multiples of (\d+)", reason):
                self.assertFalse(fits)
                needed, given = map(int, match.groups())
                self.assertEqual((needed, min(given, MOST_ALIGNMENT)), (limits.align_bytes, alignment))
                self.assertLess(given, needed)
            elif match := re.fullmatch(r"takes (rows|keys) from (\d+) to (\d+); these are (\d+)", reason):
                self.assertFalse(fits)
                least, most, value = map(int, match.groups()[1:])
                expected = (limits.seq_q_min, limits.seq_q_max, rows) if match[1] == "rows" else (limits.seq_k_min, limits.seq_k_max, keys)
                self.assertEqual((least, most, value), expected)
                self.assertFalse(least <= value <= most)
            else:
                self.assertTrue(fits, (line, limits, problem))
                self.check_reason_of_one_that_fits(line, before, lines)

    def check_reason_of_one_that_fits(self, line, before, lines):
        taken = [other for other in lines if other.taken]
        if line.reason == "the first that fits":
            self.assertTrue(line.taken)
        elif line.reason.startswith("the nearest tuning row: "):
            self.assertTrue(line.taken)
            self.assertIn(f" {line.kernel} ", line.reason)
            self.assertRegex(line.reason, r"rows=\d+ keys=\d+ parallel=\d+ alignment=\d+ compute_units=\d+ \w+ [\d.]+ us \([\w:-]+\)$")
        elif line.reason == "fits too, but is listed after the one taken":
            self.assertFalse(line.taken)
            self.assertTrue(any(other.taken and other.reason == "the first that fits" for other in before), line)
        elif line.reason == "fits too, but the nearest tuning row has another":
            self.assertFalse(line.taken)
            self.assertTrue(any(other.reason.startswith("the nearest tuning row: ") and other.kernel != line.kernel for other in taken), line)
        else:
            self.assertFalse(line.taken)
            self.assertIn(line.reason, OTHER_WAYS)
        if line.taken and line.reason == "the first that fits":
            for other in before:
                self.assertRegex(other.reason, "^(needs|takes) |^the first that fits$|after the one taken$")

    def test_replay(self):
        """Of the calls that launch the same kernels, the one that took the emulator least."""
        fastest = {}
        for row in sorted(self.rows, key=lambda row: -int(row[7])):
            fastest[row[3]] = row
        rows = list(fastest.values())
        log, again = self.write(self.folder / "fastest.csv", rows), self.folder / "again.csv"
        result = self.tool("run", "--replay", log, "--device", "emulator", FLYDSL_AOT_VERBOSE=str(again))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn(f"replayed   {len(rows)} calls, {len(rows)} on the recorded kernel", result.stdout)
        self.assertEqual([row[1:7] for row in self.rows_of(again)], [row[1:7] for row in rows])

    def test_forced_kernels(self):
        """Another kernel that fits, by option and by environment; names that are none; one for other problems."""
        forced = 0
        for row, groups in sorted(zip(self.rows, self.explain(self.log)), key=lambda pair: int(pair[0][7])):
            lines = groups[0][1] if groups else []  # none is needed
            others = [line for line in lines if line.reason.startswith("fits too")]
            if not others or forced == 2:
                continue
            forced += 1
            log, kernel = self.write(self.folder / "one.csv", [row]), others[-1].kernel
            for options, environment in ((("--force-kernel", kernel), {}), ((), {"FLYDSL_AOT_FORCE_KERNEL": kernel})):
                (again,) = self.explain(log, *options, **environment)
                self.assertIn(kernel, [line.kernel for line in again[0][1] if line.taken])
                for line in again[0][1]:
                    if line.kernel != kernel and not re.match("needs|takes", line.reason):
                        self.assertEqual(line.reason, f"forced is '{kernel}'")
            rows = self.folder / "forced.csv"
            rows.unlink(missing_ok=True)
            result = self.tool("run", "--replay", log, "--device", "emulator", "--force-kernel", kernel, FLYDSL_AOT_VERBOSE=str(rows))
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
            self.assertIn(kernel, self.rows_of(rows)[0][3].split("+"))
        log, name = self.one_call(), self.launching[0][3].split("+")[0]
        self.expect_error(2, [f"open_options.force_kernel is '{name}x'; ", "flydsl-aot archive list", f"; nearest: '{name}'"],
                          "explain", "--replay", log, "--force-kernel", name + "x")
        self.expect_error(2, [f"FLYDSL_AOT_FORCE_KERNEL is '{name},{name[:-1]}~'; '{name[:-1]}~' is none; ", f"nearest: '{name}'"],
                          "explain", "--replay", log, FLYDSL_AOT_FORCE_KERNEL=f"{name},{name[:-1]}~")

    def test_a_forced_kernel_for_other_problems(self):
        log = self.one_call()
        (groups,) = self.explain(log)
        keys = {self.entries[line.kernel].functional_key for line in groups[0][1]}
        other = next((name for name, entry in self.entries.items()
                      if self.archive.string(entry.op) == OPERATOR and entry.functional_key not in keys), None)
        if other is None:
            self.skipTest("every kernel is a candidate")
        result = self.tool("explain", "--replay", log, "--force-kernel", other)
        self.assertEqual(result.returncode, 3)
        told = re.search(rf"forced '{other}' is for (.*), the problem has ([^;]*)$", result.stderr.strip())
        self.assertTrue(told, result.stderr)
        theirs, ours = ({name: int(value) for name, value in (pair.split("=") for pair in part.split())} for part in told.groups())
        self.assertEqual(set(theirs), set(ours))
        self.assertTrue(theirs)
        for name, value in theirs.items():
            field = FIELDS[name]
            self.assertEqual(self.entries[other].functional_key >> field.first_bit & ((1 << field.bits) - 1), value)
            self.assertNotEqual(ours[name], value)

    def test_backends(self):
        log = self.one_call()
        for options, environment in ((("--backend", "aiter"), {}), ((), {"FLYDSL_AOT_BACKENDS": "triton,jit"})):
            self.expect_error(3, ["NO_KERNEL", "backend 'native' is not among those allowed"], "explain", "--replay", log, *options, **environment)
        (groups,) = self.explain(log, "--backend", "aiter,native")
        self.assertTrue(any(line.taken for _, lines in groups for line in lines))
        self.expect_error(2, ["open_options.backends is 'native,nativ'; 'nativ' is none; allowed: some of native, aiter"],
                          "explain", "--replay", log, "--backend", "native,nativ")


if __name__ == "__main__":
    unittest.main()
