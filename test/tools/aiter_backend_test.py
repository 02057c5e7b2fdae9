"""AITER's attention forward as a second backend: imported, chosen, and held to the same cases as our own kernels."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

from tool import ToolTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OBJECTS = pathlib.Path(os.environ["FLYDSL_AOT_PEERS_OBJECTS"]) / "aiter"
# What AITER's kernels do not do as our header says: scores of 10^9 leave NaN. The host cannot know.
KNOWN = {"smoke_aotriton_54_d128"}
NAME = "attention_forward_aiter_fwd_hd128_bf16"


class AiterBackendTest(ToolTest):
    @classmethod
    def setUpClass(cls):
        if not OBJECTS.is_dir():
            print("skipped: AITER's objects are not there")
            sys.exit(77)

    def setUp(self):
        super().setUp()
        self.imported = self.folder / "aiter"
        self.run_import(OBJECTS).check_returncode()
        # An archive of nothing else.
        manifest = json.loads(pathlib.Path(os.environ["FLYDSL_AOT_MANIFEST"]).read_text())
        manifest.update(kernels=[], selection=[], tuning=[])
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        self.archive = self.folder / "flydsl_aot.gfx950.fda"
        subprocess.run([os.environ["FLYDSL_AOT_PACK"], "--manifest", self.folder / "manifest.json", "--objects", self.folder,
                        "--import", self.imported, "--out", self.archive], check=True, capture_output=True)

    def run_import(self, folder):
        return subprocess.run([sys.executable, "-B", ROOT / "codegen/import/aiter.py", "--from", folder, "--readelf",
                               os.environ["FLYDSL_AOT_READELF"], "--out", self.imported], capture_output=True, text=True, check=False)

    def test_what_is_imported(self):
        manifest = json.loads((self.imported / "manifest.json").read_text())
        self.assertEqual({kernel["backend"] for kernel in manifest["kernels"]}, {"aiter"})
        self.assertIn("Permission is hereby granted" if len(manifest["licence"]) > 500 else "MIT", manifest["licence"])
        header = (ROOT / "v2src/attention_forward_aiter.h").read_text()
        (layout,) = {kernel["kernarg_layout_id"] for kernel in manifest["kernels"]}
        self.assertIn(f"{{{layout}ull, 512}}", header)
        result = self.run_import(self.folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("is this where amd-aiter is installed?", result.stderr)

    def test_it_is_chosen_where_it_fits(self):
        def explain(*settings):
            shapes = [f"--set={name}=1x2x128x128" for name in "qkv"]
            return self.tool("explain", "attention_forward", "--archive", self.archive, *shapes, *settings)

        for settings in ((), ("--set=causal=bottom-right",), ("--backend=aiter",), (f"--force-kernel={NAME}",)):
            result = explain(*settings)
            self.assertRegex(result.stdout, rf"taken +{NAME}\w* \(aiter\): the first that fits", result.stderr)
        for settings in (("--set=dtype=fp16",), ("--set=left=3", "--set=right=0", "--set=anchor=bottom-right"), ("--set=scale=-1",)):
            self.assertEqual(explain(*settings).returncode, 3, settings)

    def test_the_cases_of_our_own_kernels(self):
        result = self.tool("verify", "attention_forward", "--device", "emulator", "--archive", self.archive, "--backend", "aiter", "--suite", "smoke")
        passed, failed, without = map(int, re.search(r"(\d+) passed, (\d+) failed, (\d+) without", result.stdout).groups())
        self.assertEqual(set(re.findall(r"^FAILED (\w+):", result.stdout, re.MULTILINE)), KNOWN, result.stdout)
        self.assertEqual(failed, len(KNOWN))
        self.assertGreater(passed, 10)
        self.assertGreater(without, passed)


if __name__ == "__main__":
    unittest.main()
