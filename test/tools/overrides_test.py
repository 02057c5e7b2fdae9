"""Kernels that are forced, backends that are allowed, calls that are recorded and replayed."""
import csv
import os
import re
import unittest

from tool import ARCHIVE, ToolTest

DIRECT = "attention_forward_bf16_d128_causal_direct_m128n64"
GENERAL = "attention_forward_bf16_d128_general_m128n64"
FUSED = "attention_backward_bf16_d128_none_fused_m32n256"
KEYS = "attention_backward_bf16_d128_keys_plain_m64n128"
SHAPE = "1x2x128x128"
FORWARD = ("attention_forward", *(f"--set={name}={SHAPE}" for name in "qkv"), "--set=causal=top-left")
BACKWARD = ("attention_backward", *(f"--set={name}={SHAPE}" for name in ("q", "k", "v", "out", "dout")), "--set=lse=1x2x128")
COLUMNS = ["time", "operator", "problem", "kernel", "backend", "archive", "tuning row", "host ns"]


class OverridesTest(ToolTest):
    def taken(self, *arguments, **environment):
        result = self.tool("explain", *arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return re.findall(r"^taken +(\w+) \(native\)", result.stdout, re.MULTILINE)

    def test_a_forced_kernel_runs_and_computes(self):
        self.assertEqual(self.taken(*FORWARD), [DIRECT])
        self.assertEqual(self.taken(*FORWARD, "--force-kernel", GENERAL), [GENERAL])
        self.assertEqual(self.taken(*FORWARD, FLYDSL_AOT_FORCE_KERNEL=GENERAL), [GENERAL])
        # The option comes before the environment.
        self.assertEqual(self.taken(*FORWARD, "--force-kernel", DIRECT, FLYDSL_AOT_FORCE_KERNEL=GENERAL), [DIRECT])
        self.assertEqual(self.taken(*FORWARD, "--force-kernel", f"{KEYS},{GENERAL}"), [GENERAL])
        result = self.tool("verify", "attention_forward", "--device", "emulator", "--force-kernel", GENERAL, "--verbose",
                           "--case", "x b=1 hq=2 hkv=2 sq=70 sk=70 d=128 dv=128 dtype=bf16 mask=causal:top-left")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn("1 passed, 0 failed", result.stdout)

    def test_forced_kernels_of_a_call_with_several(self):
        self.assertIn(FUSED, self.taken(*BACKWARD))
        taken = self.taken(*BACKWARD, "--force-kernel", KEYS)
        self.assertEqual(taken, ["attention_backward_bf16_prepare", KEYS, "attention_backward_bf16_d128_queries_plain_m128n64"])
        queries = "attention_backward_bf16_d128_queries_general_m128n64"
        self.assertEqual(self.taken(*BACKWARD, "--force-kernel", f"{KEYS},{queries}")[1:], [KEYS, queries])

    def test_a_forced_kernel_that_does_not_fit(self):
        self.expect_error(3, ["NO_KERNEL", f"forced is '{DIRECT}'"], "explain", "attention_forward",
                          *(f"--set={name}=1x2x128x64" for name in "qkv"), "--force-kernel", DIRECT)
        self.expect_error(2, ["open_options.force_kernel is 'x'", "archive list"], "explain", *FORWARD, "--force-kernel", "x")
        self.expect_error(2, "FLYDSL_AOT_FORCE_KERNEL is 'x'", "explain", *FORWARD, FLYDSL_AOT_FORCE_KERNEL="x")

    def test_backends(self):
        self.assertEqual(self.taken(*FORWARD, "--backend", "native,aiter"), [DIRECT])
        self.assertEqual(self.taken(*FORWARD, FLYDSL_AOT_BACKENDS="native"), [DIRECT])
        self.expect_error(3, ["NO_KERNEL", "backend 'native' is not among those allowed"], "explain", *FORWARD, "--backend", "triton")
        self.expect_error(2, "open_options.backends is 'cuda'; allowed: some of native, aiter", "explain", *FORWARD, "--backend", "cuda")

    def record(self):
        log = self.folder / "calls, \"quoted\".csv"
        for arguments in (
                ("run", *FORWARD, "--out", f"out={self.folder}/out.npy"),
                ("run", *FORWARD, "--out", f"out={self.folder}/out.npy", "--repeat", "0", "--force-kernel", GENERAL),
                ("run", *BACKWARD, *(f"--out={name}={self.folder}/{name}.npy" for name in ("dq", "dk", "dv")), "--repeat", "0"),
                ("run", "gemm", "--set=a=3x40x72", "--set=b=72x24", "--set=bias_n=24", "--set=activation=silu", "--out",
                 f"d={self.folder}/d.npy", "--repeat", "0"),
                ("run", "attention_forward", *(f"--set={name}=2x300x64" for name in "qkv"), "--set=cu_seqlens_q=0,100,300",
                 "--set=cu_seqlens_k=0,100,300", "--out", f"out={self.folder}/o.npy", "--repeat", "0"),
                ("run", "grouped_gemm", "--set=a=64x128", "--set=b=2x128x64", "--set=offsets=20,64", "--out",
                 f"d={self.folder}/d.npy", "--repeat", "0"),
                ("run", "topk", "--set=x=5x300", "--set=k=3", "--out", f"values={self.folder}/v.npy", "--out",
                 f"indices={self.folder}/i.npy", "--repeat", "0"),
                ("run", "rms_norm", "--set=x=5x300", "--out", f"out={self.folder}/n.npy", "--repeat", "0"),
        ):
            result = self.tool(*arguments, "--device", "emulator", FLYDSL_AOT_VERBOSE=str(log))
            self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return log

    def test_calls_are_recorded_and_replayed(self):
        log = self.record()
        with open(log, newline="") as stream:
            header, *rows = csv.reader(stream)
        self.assertEqual(header, COLUMNS)
        self.assertEqual([row[1] for row in rows],
                         ["attention_forward"] * 3 + ["attention_backward", "gemm", "attention_forward", "grouped_gemm", "topk", "rms_norm"])
        for row in rows:
            self.assertRegex(row[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
            self.assertEqual((row[4], os.path.realpath(row[5])), ("native", os.path.realpath(ARCHIVE)))
            self.assertGreater(int(row[7]), 0)
        self.assertEqual([row[3] for row in rows[:3]], [DIRECT, DIRECT, GENERAL])
        self.assertEqual([row[6] for row in rows[:3]][2], "forced")
        self.assertEqual(rows[3][3].split("+")[:2], ["attention_backward_bf16_prepare", FUSED])
        self.assertEqual(rows[0][2].split()[1:3], ["q=bf16:1x2x128x128:32768x16384x128x1:256", "k=bf16:1x2x128x128:32768x16384x128x1:256"])
        self.assertIn("epilogue.activation=4", rows[4][2].split())
        again = self.folder / "again.csv"
        result = self.tool("run", "--replay", log, "--device", "emulator", FLYDSL_AOT_VERBOSE=str(again))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn("replayed   9 calls, 8 on the recorded kernel", result.stdout)
        with open(again, newline="") as stream:
            replayed = list(csv.reader(stream))[1:]
        self.assertEqual([row[1:3] for row in replayed], [row[1:3] for row in rows])

    def test_rows_before_a_bad_one_are_replayed(self):
        log = self.folder / "calls.csv"
        result = self.tool("run", "topk", "--set=x=5x300", "--set=k=3", "--out", f"values={self.folder}/v.npy", "--out",
                           f"indices={self.folder}/i.npy", "--device", "emulator", FLYDSL_AOT_VERBOSE=str(log))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        whole = log.read_text()
        # As written; with ends of lines of other systems, without the last; in an archive's path an end of line and a quote.
        path = f'"{os.path.dirname(ARCHIVE)}\nx,""y"""'
        for text in (whole, whole.replace("\n", "\r\n"), whole.rstrip("\n"), re.sub(r"native,[^,]*,", f"native,{path},", whole)):
            log.write_bytes(text.encode())
            result = self.tool("run", "--replay", log, "--device", "emulator")
            self.assertEqual((result.returncode, result.stderr), (0, ""), text)
            self.assertIn("replayed   2 calls, 2 on the recorded kernel", result.stdout)
        # Every length of the last row: told, or whole but for digits of its time.
        begin, end = whole.rstrip("\n").rfind("\n") + 1, whole.rfind(",") + 1
        for length in (begin + 1, begin + 5, begin + 40, begin + 60, end - 1, end):
            log.write_bytes(whole[:length].encode())
            result = self.tool("run", "--replay", log, "--device", "emulator")
            self.assertEqual(result.returncode, 2)
            self.assertIn("line 3: the file ends within this row", result.stderr)
            self.assertIn("replayed   1 calls, 1 on the recorded kernel", result.stdout)

    def test_recording_to_stderr_and_to_nowhere(self):
        result = self.tool("run", *FORWARD, "--out", f"out={self.folder}/out.npy", "--device", "emulator", "--repeat", "0",
                           FLYDSL_AOT_VERBOSE="stderr")
        lines = result.stderr.splitlines()
        self.assertEqual((result.returncode, lines[0], len(lines)), (0, ",".join(COLUMNS), 2))
        self.expect_error(2, ["FLYDSL_AOT_VERBOSE is '/no/such/folder/x'", "No such file"], "explain", *FORWARD,
                          FLYDSL_AOT_VERBOSE="/no/such/folder/x")

    def test_bad_records(self):
        row = "t,gemm,{},k,native,a,-,1"
        for text, words in (
                ("t,gemm\n", "line 1: 2 fields"),
                (row.format("alpha=x"), "'alpha=x' is not what"),
                (row.format("beta=1 alpha=1"), "'alpha=1' is no member of gemm in this version, or not in its place"),
                (row.format("a=bf16:2x2:2x1:3"), "'a=bf16:2x2:2x1:3' is not"),
                (row.format("a=bf16:2x2:2:16"), "is not what"),
                (row.format("a=bf17:2x2:2x1:16"), "is not what"),
                (row.format("a=bf16:2x-2:2x1:16"), "is not what"),
                (row.format("a=bf16:9223372036854775807x9223372036854775807:2x3:16"), "is not what"),
                (row.format("a=bf16:2x2:2x1:16@b"), "no such tensor comes before it"),
                (row.format("alpha=1 a=bf16:2x2:2x1:16"), "INVALID"),
                ("t,no_such,,k,native,a,-,1", "operator 'no_such' is unknown"),
                # Cut off in the middle, by the end of the disk or the process: in a number, in a quote, in the header.
                ("t,gemm,alpha=1 a=bf16:2x2:2x1:1", "line 1: the file ends within this row"),
                ("t,gemm,,k,native,a,-,", "line 1: the file ends within this row"),
                ('t,"gemm,,k,native,a,-,1', "line 1: the file ends within this row"),
                ('t,gemm,,k,native,"a\nb,-,1\n', "line 1: the file ends within this row"),
                ("time,operator,prob", "line 1: the file ends within this row"),
                # Of another version, or of no version.
                ("time,operator,problem,kernel,host ns\nt,gemm,,k,1\n", "line 1: rows of another version, with the columns time,operator,problem"),
                ("time,version,operator,problem,kernel,backend,archive,tuning row,host ns\n", "line 1: rows of another version"),
                (row.format("alpha=1 gamma=2") + "\n", "'gamma=2' is no member of gemm in this version"),
                (row.format("") + "s\n", "host ns is '1s'; it must be a number"),
                (",".join(COLUMNS) + "\n" + row.format("x") + "\n", "line 2: 'x' is no member"),
                ("\0\x7fELF\1\2\n", "line 1: 1 fields"),
                ("x" * 2000000, "line 1: no row is so long"),
                (row.format("a=bf16:1099511627776x1048576:1048576x1:16"), "")):
            with self.subTest(text=text):
                file = self.folder / "bad.csv"
                file.write_text(text)
                result = self.tool("run", "--replay", file, "--device", "emulator")
                self.assertEqual(result.returncode, 2 if words else 4, result)
                self.assertIn(words, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertRegex(result.stdout, r"replayed   [01] calls|^$")
                if words and "INVALID" not in words and "out of" not in words:
                    self.expect_error(2, words, "explain", "--replay", file)
        self.expect_error(2, "No such file", "run", "--replay", self.folder / "none.csv", "--device", "emulator")
        self.expect_error(2, "is a directory", "run", "--replay", self.folder, "--device", "emulator")
        self.expect_error(2, "needs an operator, or --replay", "run", "--device", "emulator")
        self.expect_error(2, "needs an operator, or --replay", "explain")
        self.expect_error(2, "excludes", "explain", "gemm", "--replay", "x")
        self.expect_error(2, "excludes", "run", "gemm", "--replay", "x")


if __name__ == "__main__":
    unittest.main()
