"""flydsl-aot tune --device cuda, with a driver that only pretends (fake_cuda.cc): which figure is whose, where rows go, and that selection
finds them in an archive of sm_90."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tool import ToolTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "codegen"))
from generate import layout, tuning  # noqa: E402

ARCH = "sm_90"
OPERATORS = {
    "rms_norm": "x=64x4096 weight=4096 dtype=bf16",
    "layer_norm": "x=64x4096 weight=4096 bias=4096 dtype=fp16",
    "rms_norm_backward": "x=64x1024 weight=1024 dout=64x1024 rstd=64 dtype=bf16",
    "layer_norm_backward": "x=64x1024 weight=1024 dout=64x1024 rstd=64 mean=64 dtype=fp32",
    "topk": "x=64x1024 k=8 dtype=bf16",
    "topk_softmax": "x=64x128 k=8 dtype=bf16",
}
CASE = OPERATORS["rms_norm"]
# Neither the kernel that is taken without tuning nor the last one.
FAST = "rms_norm_bf16_t256x3"
FAKE = {"LD_LIBRARY_PATH": os.environ["FLYDSL_AOT_FAKE_CUDA"]}
BAD, UNSUPPORTED, FAILURE = 2, 3, 4


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


class TuneCudaTest(ToolTest):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.objects = pathlib.Path(holder.name)
        subprocess.run([sys.executable, "-B", ROOT / "codegen/generate/main.py", "--arch", ARCH, "--out", cls.objects], check=True)
        cls.manifest = json.loads((cls.objects / ARCH / "manifest.json").read_text())
        # What the compiler would have made, as far as the driver that pretends looks at it.
        for kernel in cls.manifest["kernels"]:
            path = cls.objects / kernel["object"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f".version 8.0\n.target {ARCH}\n// {kernel['symbol']:64}\n")
            _, arguments = layout.offsets(tuning.operator_named(kernel["op"]))
            path.with_name(f"{path.name}.json").write_text(json.dumps({
                "symbol": kernel["symbol"], "target_id": ARCH, "kernarg_bytes": arguments, "lds_static_bytes": 0, "scratch_bytes": 0, "vgpr_count": 0,
                "sgpr_count": 0, "wave_size": 32, "vgpr_spill_count": 0, "sgpr_spill_count": 0, "max_flat_workgroup_size": 1024}))

    def setUp(self):
        super().setUp()
        self.cases = self.folder / "cases.txt"
        self.cases.write_text(f"{CASE}\n")
        (self.folder / ARCH).mkdir()
        self.out = self.folder / ARCH / "rms_norm.jsonl"
        self.archive = self.pack([])

    def pack(self, rows):
        """The archive with these rows of tuning."""
        manifest, archive = self.folder / "manifest.json", self.folder / f"flydsl_aot.{ARCH}.fda"
        manifest.write_text(json.dumps({**self.manifest, "tuning": rows}))
        subprocess.run([os.environ["FLYDSL_AOT_PACK"], "--manifest", manifest, "--objects", self.objects, "--out", archive], check=True)
        return archive

    def arguments(self, *more, op="rms_norm"):
        return ("tune", op, "--device", "cuda", "--archive", self.archive, "--cases", self.cases, "--out", self.out, *more)

    def taken(self):
        settings = [f"--set={setting}" for setting in CASE.split()]
        result = self.tool("explain", "rms_norm", "--arch", ARCH, "--archive", self.archive, *settings)
        (line,) = (line for line in result.stdout.splitlines() if line.startswith("taken"))
        return line

    def test_rows_and_the_kernel_that_selection_takes_then(self):
        self.assertNotIn(FAST, self.taken())
        result = self.tool(*self.arguments("--arch", ARCH), **FAKE, FAKE_CUDA_FAST=FAST)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Fake GPU", result.stdout)
        (row,) = map(json.loads, self.out.read_text().splitlines())
        self.assertEqual((row["origin"], row["compute_units"], row["winner"]), ("cuda:Fake GPU", 132, FAST))
        self.assertEqual({name: us for name, us in row["figures_us"].items() if us != 10}, {FAST: 5})
        self.assertGreater(len(row["figures_us"]), 3)
        op = tuning.operator_named("rms_norm")
        self.archive = self.pack(tuning.manifest_rows(op, ARCH, self.folder))
        self.assertIn(FAST, self.taken())
        self.assertIn("cuda:Fake GPU", self.taken())

    def test_every_operator_has_rows(self):
        for op, case in OPERATORS.items():
            with self.subTest(op=op):
                self.cases.write_text(f"{case}\n")
                self.out = self.folder / ARCH / f"{op}.jsonl"
                result = self.tool(*self.arguments(op=op), **FAKE)
                self.assertEqual(result.returncode, 0, result.stderr)
                program = ROOT / "codegen/generate/tuning.py"
                checked = subprocess.run([sys.executable, "-B", program, self.out], capture_output=True, text=True, check=False)
                self.assertEqual(checked.stdout, f"{self.out}: 1 rows, no fault\n", checked.stderr)

    def test_what_is_refused(self):
        self.expect_error(BAD, ["'gemm' is not one of", "rms_norm, layer_norm"], *self.arguments(op="gemm"), **FAKE)
        self.expect_error(FAILURE, "NO_DEVICE", *self.arguments(), **FAKE, FAKE_CUDA_DEVICES="0")
        self.expect_error(UNSUPPORTED, ["gfx950", "the device is sm_90"], *self.arguments("--arch", "gfx950"), **FAKE)
        if not has_driver():
            self.expect_error(FAILURE, ["--device cuda: no NVIDIA driver", "libcuda.so.1"], *self.arguments())
        result = self.tool(*self.arguments(), **FAKE, FAKE_CUDA_FAILS="cuLaunchKernel")
        self.assertEqual(result.returncode, FAILURE)
        self.assertIn(f"case {CASE}: ", result.stderr)
        self.assertIn("an error of the fake driver", result.stderr)
        self.assertEqual(self.out.read_text(), "")

    def test_figures_of_two_devices_are_not_mixed(self):
        self.assertEqual(self.tool(*self.arguments(), **FAKE).returncode, 0)
        row = self.out.read_text()
        self.out.write_text(row.replace("cuda:Fake GPU", "cuda:Another"))
        self.cases.write_text(f"{CASE}\nx=8x4096 dtype=bf16\n")
        self.expect_error_after_output(["holds figures of cuda:Another", "of cuda:Fake GPU"], *self.arguments("--resume"), **FAKE)

    def expect_error_after_output(self, words, *arguments, **environment):
        result = self.tool(*arguments, **environment)
        self.assertEqual(result.returncode, BAD, result)
        for word in words:
            self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main()
