"""flydsl-aot tune: rows, shards, going on where it was cut off."""
import json
import pathlib
import subprocess
import sys
import unittest

from tool import ToolTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = (
    "a=16x128 b=128x128 dtype=bf16 transpose_b=yes",
    "a=64x256 b=128x256 transpose_b=yes",
    "a=64x64 b=64x64 dtype=fp16",
)


class TuneTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.cases = self.folder / "gemm.txt"
        self.cases.write_text("# problems\n\n" + "".join(f"  {case}   # one\n" for case in CASES))
        (self.folder / "gfx950").mkdir()
        self.out = self.folder / "gfx950/gemm.jsonl"

    def tune(self, *arguments, op="gemm"):
        return self.tool("tune", op, "--device", "emulator", "--cases", self.cases, "--candidates", "2", *arguments)

    def rows(self, path=None):
        return [json.loads(line) for line in (path or self.out).read_text().splitlines()]

    def check(self):
        program = ROOT / "codegen/generate/tuning.py"
        result = subprocess.run([sys.executable, "-B", program, self.out], capture_output=True, text=True, check=False)
        self.assertEqual(result.stdout, f"{self.out}: {len(CASES)} rows, no fault\n", result.stderr)

    def test_rows_of_shards_are_those_of_one_run(self):
        result = self.tune("--out", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tuned      3 problems, 0 were there, 0 failed", result.stdout)
        self.assertEqual(result.stderr.count("left: "), 3)
        self.check()
        whole = self.out.read_bytes()
        first = next(row for row in self.rows() if row["case"] == CASES[0])
        self.assertEqual(first["problem"], {"alignment": 256, "keys": 128, "parallel": 128, "rows": 16})
        self.assertEqual((first["compute_units"], first["key"]["a_dtype"], len(first["figures_us"])), (256, 4, 2))
        self.assertRegex(first["origin"], r"^model:[0-9a-f]{16}$")
        self.assertEqual(first["figures_us"][first["winner"]], min(first["figures_us"].values()))
        shards = []
        for shard in ("1/2", "2/2"):
            shards.append(self.folder / f"{shard[0]}.jsonl")
            result = self.tune("--out", shards[-1], "--shard", shard)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([len(self.rows(path)) for path in shards], [2, 1])
        merged = subprocess.run(["sort", "-mu", *shards], capture_output=True, check=True, env={"LC_ALL": "C"}).stdout
        self.assertEqual(merged, whole)
        # Cut off inside a row: that one is made again, the others are kept.
        self.out.write_bytes(whole[:-20])
        self.assertEqual(self.tune("--out", self.out).returncode, 2)
        result = self.tune("--out", self.out, "--resume")
        self.assertIn("tuned      1 problems, 2 were there, 0 failed", result.stdout)
        self.assertEqual(self.out.read_bytes(), whole)

    def test_of_kernels_that_are_named_and_the_default(self):
        self.cases.write_text(f"{CASES[0]}\n")
        self.assertEqual(self.tune("--out", self.out, "--kernels", "m256n256|m128n128$").returncode, 0)
        (row,) = self.rows()
        self.assertEqual((len(row["figures_us"]), row["default"] in row["figures_us"]), (2, True))
        self.assertRegex(" ".join(row["figures_us"]), "m128n128|m256n256")

    def test_bad_input(self):
        for shard in ("0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3"):
            self.expect_error(2, f"--shard {shard}: must be I/N", "tune", "gemm", "--device", "emulator", "--cases", self.cases, "--shard", shard)
        self.expect_error(2, "--kernels (: ", "tune", "gemm", "--device", "emulator", "--cases", self.cases, "--kernels", "(")
        self.expect_error(2, "--cases", "tune", "gemm", "--device", "emulator", "--cases", self.folder / "none")
        self.expect_error(2, "needs a device", "tune", "gemm", "--device", "none", "--cases", self.cases)
        self.expect_error(2, "operator 'x' is unknown", "tune", "x", "--device", "emulator", "--cases", self.cases)
        self.out.write_text("nonsense\n")
        self.expect_error(2, "is no tuning row", "tune", "gemm", "--device", "emulator", "--cases", self.cases, "--out", self.out, "--resume")
        self.cases.write_text("# nothing\n")
        self.expect_error(2, "holds no case", "tune", "gemm", "--device", "emulator", "--cases", self.cases)

    def test_cases_that_fail_are_told_and_the_others_tuned(self):
        self.cases.write_text(f"a=3x3\n{CASES[0]}\na=2x3 b=4x5\n")
        result = self.tune("--out", self.out)
        self.assertEqual(result.returncode, 4)
        self.assertIn("tuned      1 problems, 0 were there, 2 failed", result.stdout)
        self.assertIn("case a=3x3: --in b=FILE or --set b=SHAPE is missing", result.stderr)
        self.assertEqual([row["case"] for row in self.rows()], [CASES[0]])


if __name__ == "__main__":
    unittest.main()
