"""flydsl-aot tune: rows, shards, going on where it was cut off, what a terminal shows; and the tables of tuning/ against what the library says today."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import unittest

from tool import TOOL, ToolTest

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
        for shard in ("0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3", "", "/", "1/", "/2", "0/0", "+1/2", " 1/2", "1 /2", "1/ 2", "1/2 ", "1.5/2", "0x1/2",
                      "1/-2", "1/1000001", "1/99999999999999999999", "99999999999999999999/2"):
            self.expect_error(2, f"--shard {shard}: must be I/N", "tune", "gemm", "--device", "emulator", "--cases", self.cases, "--shard", shard)
        self.expect_error(2, "--kernels (: ", "tune", "gemm", "--device", "emulator", "--cases", self.cases, "--kernels", "(")
        self.expect_error(2, "--cases", "tune", "gemm", "--device", "emulator", "--cases", self.folder / "none")
        self.expect_error(2, "needs a device", "tune", "gemm", "--device", "none", "--cases", self.cases)
        self.expect_error(4, "no usable HIP runtime", "tune", "gemm", "--device", "hip", "--cases", self.cases,
                          FLYDSL_AOT_HIP_LIBRARY="/no/such/libamdhip64.so")
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
        result = self.tune("--out", self.out, "--resume")
        self.assertEqual(result.returncode, 4)
        self.assertIn("tuned      0 problems, 1 were there, 2 failed", result.stdout)

    def test_what_was_killed_goes_on(self):
        self.assertEqual(self.tune("--out", self.out).returncode, 0)
        whole = self.out.read_bytes()
        self.out.unlink()
        arguments = [TOOL, "tune", "gemm", "--device", "emulator", "--cases", self.cases, "--candidates", "2", "--out", self.out]
        with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            self.assertRegex(process.stderr.readline(), r"^1/3, \d:\d\d:\d\d left: a=16x128")
            process.send_signal(signal.SIGKILL)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        there = self.out.read_text().count("\n")
        self.assertGreaterEqual(there, 1)
        result = self.tune("--out", self.out, "--resume")
        self.assertIn(f"tuned      {len(CASES) - there} problems, {there} were there, 0 failed", result.stdout)
        self.assertEqual(self.out.read_bytes(), whole)

    def test_rows_that_are_stale_are_made_anew(self):
        self.assertEqual(self.tune("--out", self.out).returncode, 0)
        whole = self.out.read_text()
        changed = [json.loads(line) for line in whole.splitlines()]
        changed[0]["problem"]["keys"] += 1
        changed[1]["default"] = changed[1]["runner_up"] if changed[1]["runner_up"] != changed[1]["default"] else changed[1]["winner"]
        lines = (json.dumps(row, sort_keys=True, separators=(",", ":")) for row in changed)
        self.out.write_text("".join(f"{line}\n" for line in lines))
        result = self.tune("--out", self.out, "--resume")
        self.assertIn("tuned      2 problems, 1 were there, 0 failed\nstale      2 rows, made anew\n", result.stdout)
        for row in changed[:2]:
            self.assertIn(f"case {row['case']}: its row was stale\n", result.stderr)
        self.assertEqual(self.out.read_text(), whole)

    def shown(self, columns, *arguments):
        """What a terminal of that many columns is sent, its lines and what overwrites them one by one."""
        terminal, end = os.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([TOOL, "tune", "gemm", "--device", "emulator", "--cases", self.cases, "--candidates", "1", "--out", self.out, *arguments],
                                   stdout=subprocess.DEVNULL, stderr=end)
        os.close(end)
        sent = b""
        try:
            while part := os.read(terminal, 4096):
                sent += part
        except OSError:  # Linux says so that nobody has the other end any more
            pass
        os.close(terminal)
        process.wait()
        text = sent.decode().replace("\r\n", "\n")
        self.assertTrue(text.endswith("\n"), text)
        return [part.replace("\x1b[K", "") for part in re.split(r"[\r\n]", text) if part.replace("\x1b[K", "")]

    def test_a_terminal_shows_a_bar(self):
        self.cases.write_text("".join(f"{case}\n" for case in (*CASES, "a=3x3")))
        bar = r"\[#*-*\] (\d)/4, (\?|\d+:\d\d:\d\d) left(: .*)?"
        told = ["flydsl-aot: case a=3x3: --in b=FILE or --set b=SHAPE", "flydsl-aot: error: 1 cases have no row"]
        full = f"[{'#' * 30}] 4/4, 0:00:00 left"
        lines = self.shown(60)
        self.assertEqual([line.split(" is missing")[0] for line in lines if not re.fullmatch(bar, line)], told)
        bars = [line for line in lines if re.fullmatch(bar, line)]
        self.assertEqual(max(map(len, bars)), 59)  # with one more the next bar would be below
        self.assertEqual(bars[0], f"[{'-' * 30}] 0/4, ? left")
        self.assertEqual([line[33] for line in bars if ": " in line], ["1", "2", "3"])
        self.assertEqual(lines[-2:], [full, told[1]])
        # Rows that are there and cases that fail leave no half line either.
        self.assertEqual(self.shown(200, "--resume")[-2:], [full, told[1]])


def block_of_readme(first):
    """The commands of the block of tuning/README.md that begins with `first`, comments dropped."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "tuning/README.md").read_text(), re.DOTALL)
    (block,) = (block for block in blocks if block.startswith(first))
    return [re.sub(r" +# .*", "", line) for line in block.splitlines()]


class ReadmeTest(ToolTest):
    """The commands of tuning/README.md, of an operator whose problems take less time."""

    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        (self.folder / "bin/flydsl-aot").symlink_to(TOOL)
        cases = "".join(f"x={rows}x64 k=8 dtype=bf16\n" for rows in range(8, 13))
        for name in ("whole", "parts"):
            (self.folder / name / "tuning/cases").mkdir(parents=True)
            (self.folder / name / "tuning/cases/topk.txt").write_text(cases)
        self.tune, self.resume, self.parallel, self.merge = block_of_readme("flydsl-aot tune")

    def sh(self, name, command, **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FLYDSL_AOT_", "FLYDSL_EMU_"))}
        env |= {"PATH": f"{self.folder}/bin:{env['PATH']}", "HOME": str(self.folder), **environment}
        result = subprocess.run(["sh", "-ec", command.replace("gemm", "topk")], cwd=self.folder / name, env=env, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, (command, result))
        return result.stdout

    def expect_the_same(self):
        self.assertIn("tuned      5 problems, 0 were there, 0 failed", self.sh("whole", self.tune))
        self.assertIn("tuned      0 problems, 5 were there, 0 failed", self.sh("whole", self.resume))
        files = [{path.name: path.read_bytes() for path in (self.folder / name / "tuning/gfx950").iterdir()} for name in ("whole", "parts")]
        self.assertEqual(list(files[0]), ["topk.jsonl"])
        self.assertEqual(files[0]["topk.jsonl"].count(b"\n"), 5)
        self.assertEqual(files[0], files[1])

    def test_gnu_parallel(self):
        program = shutil.which("parallel")
        if not program or "GNU" not in subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout:
            self.skipTest("there is no GNU parallel (Debian: parallel)")
        self.sh("parts", self.parallel)
        self.assertEqual(len(list((self.folder / "parts/tuning/gfx950").iterdir())), 8)
        self.sh("parts", self.merge)
        self.expect_the_same()

    def test_slurm_array(self):
        options, command = block_of_readme("#SBATCH")
        first, count = map(int, re.search(r"--array=(\d+)-(\d+)", options).groups())
        self.assertEqual((first, "--device hip" in command), (1, True))
        self.assertGreater(count, 1)
        for task in (1, 2, 3):
            self.sh("parts", command.replace("--device hip", "--device emulator"), SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_COUNT="3")
        self.sh("parts", self.merge.replace("of8", "of3"))
        self.expect_the_same()


class TablesTest(ToolTest):
    """tuning/gfx950: rows of problems, keys, defaults and kernels as the library has them now, by the timing model of now."""

    def test_no_row_is_stale(self):
        for table in sorted((ROOT / "tuning/gfx950").glob("*.jsonl")):
            with self.subTest(table=table.name):
                copy, cases = self.folder / table.name, self.folder / "cases.txt"
                copy.write_bytes(table.read_bytes())
                rows = [json.loads(line) for line in copy.read_text().splitlines()]
                cases.write_text("".join(f"{row['case']}\n" for row in rows))
                result = self.tool("tune", table.stem, "--device", "emulator", "--cases", cases, "--out", copy, "--resume", "--candidates", "1")
                self.assertEqual((result.stderr, result.returncode), ("", 0))
                self.assertIn(f"tuned      0 problems, {len(rows)} were there, 0 failed", result.stdout)
                self.assertEqual(copy.read_bytes(), table.read_bytes())

    def test_figures_are_of_the_timing_model_as_it_is(self):
        cases, out = self.folder / "cases.txt", self.folder / "topk.jsonl"
        cases.write_text("x=8x64 k=8 dtype=bf16\n")
        self.assertEqual(self.tool("tune", "topk", "--device", "emulator", "--cases", cases, "--out", out, "--candidates", "1").returncode, 0)
        now = json.loads(out.read_text())["origin"]
        for table in sorted((ROOT / "tuning/gfx950").glob("*.jsonl")):
            self.assertEqual({json.loads(line)["origin"] for line in table.read_text().splitlines()}, {now}, table.name)


if __name__ == "__main__":
    unittest.main()
