"""The archive that -DFLYDSL_AOT_WITH_AITER=ON builds: our kernels and AITER's in one table, each with its reason, chosen by list and by name."""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from tool import ARCHIVE, ToolTest

SHAPE = "1x2x256x128"
PROBLEMS = {
    "attention_forward": [f"--set={name}={SHAPE}" for name in "qkv"],
    "attention_backward": [f"--set={name}={SHAPE}" for name in ("q", "k", "v", "out", "dout")] + ["--set=lse=1x2x256"],
}
CASE = {"attention_forward": "x b=1 hq=2 hkv=2 sq=256 sk=256 d=128 dv=128 dtype=bf16",
        "attention_backward": "x b=1 hq=2 hkv=2 sq=256 sk=256 d=128 dv=128 dtype=bf16"}


class ArchiveTest(ToolTest):
    def candidates(self, op, *options, **environment):
        result = self.tool("explain", op, *PROBLEMS[op], *options, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [match.groups() for match in re.finditer(r"^(taken|not-taken) +(\w+) \((\w+)\): (.*)$", result.stdout, re.MULTILINE)]

    def test_archive(self):
        result = self.tool("archive", "verify", ARCHIVE)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        listed = self.tool("archive", "list", ARCHIVE).stdout
        for op in PROBLEMS:
            self.assertIn(f"{op}_aiter_", listed)
        self.assertIn("Permission is hereby granted", pathlib.Path(os.environ["LICENCE"]).read_text())

    def test_both_backends_are_candidates(self):
        for op in PROBLEMS:
            with self.subTest(op=op):
                found = self.candidates(op)
                taken = {backend for how, _, backend, _ in found if how == "taken"}
                self.assertEqual(taken, {"native"})
                others = [(name, reason) for how, name, backend, reason in found if backend == "aiter"]
                self.assertTrue(others)
                for name, reason in others:
                    self.assertNotEqual(reason, "", name)

    def test_chosen(self):
        for op in PROBLEMS:
            theirs = next(name for _, name, backend, _ in self.candidates(op) if backend == "aiter")
            for options, environment in ((("--backend", "aiter"), {}), ((), {"FLYDSL_AOT_BACKENDS": "aiter"}),
                                         (("--force-kernel", theirs), {}), ((), {"FLYDSL_AOT_FORCE_KERNEL": theirs})):
                with self.subTest(op=op, options=options, environment=environment):
                    taken = [(name, backend) for how, name, backend, _ in self.candidates(op, *options, **environment) if how == "taken"]
                    self.assertIn("aiter", [backend for _, backend in taken])
                    log = self.folder / "calls.csv"
                    log.unlink(missing_ok=True)
                    result = self.tool("verify", op, "--device", "emulator", "--case", CASE[op], *options, FLYDSL_AOT_VERBOSE=str(log), **environment)
                    self.assertIn("1 passed, 0 failed", result.stdout, result.stderr)
                    self.assertIn("aiter", log.read_text().splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
