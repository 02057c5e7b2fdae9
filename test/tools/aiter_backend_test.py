"""AITER's attention forward and backward as a second backend: imported, chosen, and held to the same cases as our own kernels."""
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
KNOWN = {"attention_forward": {"smoke_aotriton_54_d128"}, "attention_backward": {"smoke_aotriton_54_d128", "smoke_aotriton_54_overflow_d128"}}
# Of one call: kernels of ours before and after one of AITER's.
OURS = r"attention_backward_(bf16|fp16)_(prepare|convert)_rows"
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
        # An archive of nothing else that computes.
        manifest = json.loads(pathlib.Path(os.environ["FLYDSL_AOT_MANIFEST"]).read_text())
        kernels = [kernel for kernel in manifest["kernels"] if re.fullmatch(OURS, kernel["name"])]
        names = {kernel["name"] for kernel in kernels}
        selection = [row for row in manifest["selection"] if row["candidates"][0]["kernel"] in names]
        self.assertEqual((len(kernels), len(selection)), (4, 4))
        manifest.update(kernels=kernels, selection=selection, tuning=[])
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        self.archive = self.folder / "flydsl_aot.gfx950.fda"
        subprocess.run([os.environ["FLYDSL_AOT_PACK"], "--manifest", self.folder / "manifest.json", "--objects", os.environ["FLYDSL_AOT_KERNELS"],
                        "--import", self.imported, "--out", self.archive], check=True, capture_output=True)

    def run_import(self, folder):
        return subprocess.run([sys.executable, "-B", ROOT / "codegen/import/aiter.py", "--from", folder, "--readelf",
                               os.environ["FLYDSL_AOT_READELF"], "--out", self.imported], capture_output=True, text=True, check=False)

    def test_what_is_imported(self):
        manifest = json.loads((self.imported / "manifest.json").read_text())
        self.assertEqual({kernel["backend"] for kernel in manifest["kernels"]}, {"aiter"})
        self.assertIn("Permission is hereby granted" if len(manifest["licence"]) > 500 else "MIT", manifest["licence"])
        for op, kernarg_bytes in (("attention_forward", 512), ("attention_backward", 704)):
            header = (ROOT / f"v2src/{op}_aiter.h").read_text()
            (layout,) = {kernel["kernarg_layout_id"] for kernel in manifest["kernels"] if kernel["op"] == op}
            self.assertIn(f"{{{layout}ull, {kernarg_bytes}}}", header)
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

    def explain_backward(self, *settings, heads_kv=2, head_dim=128):
        shapes = {"q": (2, head_dim), "k": (heads_kv, head_dim), "v": (heads_kv, 128), "out": (2, 128), "dout": (2, 128)}
        shapes = [f"--set={name}=1x{heads}x128x{dim}" for name, (heads, dim) in shapes.items()]
        return self.tool("explain", "attention_backward", "--archive", self.archive, *shapes, "--set=lse=1x2x128", *settings)

    def test_one_kernel_for_all_gradients_between_two_of_ours(self):
        for settings in ({}, {"head_dim": 192}):
            result = self.explain_backward("--backend=aiter", **settings)
            taken = re.findall(r"^taken +attention_backward_(\w+) ", result.stdout, re.MULTILINE)
            self.assertEqual(len(taken), 3, result.stdout + result.stderr)
            self.assertRegex(" ".join(taken), r"^bf16_prepare_rows aiter_bwd_hd\w+_bf16_a32_pssk\w* bf16_convert_rows$")
        self.assertEqual(self.explain_backward("--set=causal=top-left", head_dim=192).returncode, 0)
        for settings, shapes in ((("--set=causal=top-left",), {}), ((), {"heads_kv": 1}), (("--set=scale=-1",), {}), (("--set=softcap=3",), {})):
            self.assertEqual(self.explain_backward(*settings, **shapes).returncode, 3, settings)

    def test_the_cases_of_our_own_kernels(self):
        # Those that run attention_forward first need one of ours.
        for op, only, least in (("attention_forward", "", 11), ("attention_backward", "^(?!smoke_.*chained)", 20)):
            result = self.tool("verify", op, "--device", "emulator", "--archive", self.archive, "--backend", "aiter", "--suite", "smoke", "--only", only)
            passed, failed, without = map(int, re.search(r"(\d+) passed, (\d+) failed, (\d+) without", result.stdout).groups())
            self.assertEqual(set(re.findall(r"^FAILED (\w+):", result.stdout, re.MULTILINE)), KNOWN[op], result.stdout)
            self.assertEqual(failed, len(KNOWN[op]))
            self.assertGreaterEqual(passed, least)
            self.assertGreater(without, passed)

    def test_several_key_tiles_of_the_backward(self):
        for line in ("dtype=bf16 b=2 sq=400 sk=600 d=192 mask=causal:top-left", "dtype=fp16 sq=600 sk=400 d=192 mask=causal:top-left",
                     "dtype=fp16 b=2 sq=300 sk=600 d=192", "dtype=bf16 b=2 sq=400 sk=600 d=128", "dtype=fp16 sq=300 sk=600 d=128"):
            result = self.tool("verify", "attention_backward", "--device", "emulator", "--archive", self.archive, "--backend", "aiter",
                               "--case", f"tiles hq=2 hkv=2 dv=128 {line}", FLYDSL_EMU_CHECKS="race")
            self.assertIn("1 passed, 0 failed", result.stdout, result.stderr)


if __name__ == "__main__":
    unittest.main()
