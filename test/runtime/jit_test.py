"""Kernels that no archive has, compiled by the emulator's hipRTC through the library: they compute right, are kept, and say what they are."""
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TOOL, PACK = os.environ["TOOL"], os.environ["PACK"]
MANIFEST, OBJECTS = pathlib.Path(os.environ["MANIFEST"]), os.environ["OBJECTS"]
ARCHIVE = pathlib.Path(os.environ["ARCHIVE"])

# D and Dv beyond every archive, padded and not, masks, rows that the tiles cut, rows that the slow path computes: what they compile,
# with which head dims in its name.
HEAD_DIMS = {
    "attention_forward": ({"bf16_d640x512_general_m128n64"}, """
smoke_d640 dtype=bf16 b=1 hq=2 hkv=1 sq=37 sk=70 d=640 dv=512 mask=causal:bottom-right
smoke_d600_dv500 dtype=bf16 b=2 hq=1 hkv=1 sq=70 sk=137 d=600 dv=500 mask=none
"""),
    "attention_backward": ({f"bf16_d640x512_{one}" for one in ("keys_general_m32n32", "queries_general_m32n32", "bias_general_m32n32")}, """
smoke_d640 dtype=bf16 b=1 hq=2 hkv=1 sq=37 sk=70 d=640 dv=512 mask=causal:bottom-right bias=fp32 dbias=fp32
smoke_d600_dv500 dtype=bf16 b=1 hq=2 hkv=1 sq=70 sk=40 d=600 dv=500 nan_k=1 nan_dout=1 nan_hidden=yes mask=causal:top-left
"""),
    "attention_decode": ({"bf16_d256_e5m2_m16n32", "bf16_d576x512_e4m3_m16n32"}, """
smoke_e5m2_d256 dtype=bf16 kv_dtype=e5m2 b=2 hq=4 hkv=2 sq=2 sk=100 d=256 dv=240 mask=causal:bottom-right
smoke_e4m3_d512 dtype=bf16 kv_dtype=e4m3 b=2 hq=2 hkv=1 sq=1 sk=70 d=512 dv=512
"""),
}


class JitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        # Of one architecture, whatever else the build has.
        self.archives = self.folder / "archives"
        self.archives.mkdir()
        (self.archives / ARCHIVE.name).symlink_to(ARCHIVE)

    def start(self, *arguments, **environment):
        settings = {"FLYDSL_AOT_DEVICE": "emulator", "FLYDSL_AOT_JIT": "on", "FLYDSL_AOT_JIT_CACHE_DIR": str(self.cache), "FLYDSL_AOT_LOG": "info",
                    "FLYDSL_AOT_ARCHIVE_PATH": str(self.archives)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FLYDSL_")}
        return subprocess.Popen([TOOL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=kept | settings | environment)

    def run_tool(self, *arguments, status=0, **environment):
        process = self.start(*arguments, **environment)
        out, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, status, out + errors)
        return out, errors

    def compiled(self, errors):
        """Names of the kernels that a run compiled, and of those that it found."""
        lines = errors.splitlines()
        return ({line.split()[3] for line in lines if "info: compiled " in line},
                {line.split()[2] for line in lines if "was compiled before" in line})

    def archive_of(self, prefix):
        """One for gfx950 that has only kernels whose names begin so."""
        manifest = json.loads(MANIFEST.read_text())
        manifest["kernels"] = [kernel for kernel in manifest["kernels"] if kernel["name"].startswith(prefix)]
        names = {kernel["name"] for kernel in manifest["kernels"]}
        manifest["selection"] = [row for row in manifest["selection"] if {one["kernel"] for one in row["candidates"]} <= names]
        manifest["tuning"] = []
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        archive = self.folder / "flydsl_aot.gfx950.fda"
        subprocess.run([PACK, "--manifest", self.folder / "manifest.json", "--objects", OBJECTS, "--out", archive], check=True, capture_output=True)
        return archive

    def test_an_architecture_without_images(self):
        verify = ("--device", "emulator", "--only", "smoke_(plain|weight|fused)")
        for operator in ("rms_norm", "layer_norm"):
            first, errors = self.run_tool("verify", operator, *verify, FLYDSL_EMU_ARCH="gfx942", FLYDSL_EMU_CHECKS="all")
            made, found = self.compiled(errors)
            self.assertRegex(first, r"\n[1-9]\d* passed, 0 failed")
            self.assertTrue(made and not found, errors)
            again, errors = self.run_tool("verify", operator, *verify, FLYDSL_EMU_ARCH="gfx942", FLYDSL_EMU_CHECKS="all")
            self.assertEqual((again, self.compiled(errors)), (first, (set(), made)))

    def test_operators_on_an_architecture_without_images(self):
        for operator, case in (("topk", "shape=9x999 k=8 dtype=fp16"), ("topk_softmax", "shape=37x128 k=8 dtype=bf16"),
                               ("rms_norm_backward", "dtype=bf16 m=110 n=128 weight=same dweight=same"),
                               ("layer_norm_backward", "dtype=bf16 m=110 n=128 weight=same dweight=same dbias=same"),
                               ("attention_forward", "dtype=bf16 b=1 hq=2 hkv=1 sq=37 sk=70 d=32 dv=32 mask=causal:bottom-right"),
                               ("attention_backward", "dtype=bf16 b=1 hq=2 hkv=1 sq=37 sk=70 d=32 dv=32 mask=causal:bottom-right sinks=normal dsinks=yes"),
                               ("attention_decode", "dtype=bf16 b=2 hq=4 hkv=2 sq=1 sk=100 d=64 dv=64")):
            out, errors = self.run_tool("verify", operator, "--device", "emulator", "--case", f"x {case}", FLYDSL_EMU_ARCH="gfx942")
            self.assertIn("1 passed, 0 failed", out)
            self.assertTrue(self.compiled(errors)[0], errors)

    def test_products_of_an_architecture_without_images(self):
        # (With parts of K and sums: three kernels.)
        for operator, case, made in (
            ("gemm", "dtype=fp16 m=33 n=70 k=2500 bias_n=normal activation=silu residual=normal d_sum_n=fp32",
             {"gemm_fp16_general_m128n128", "gemm_second_pass", "gemm_sums"}),
            ("grouped_gemm", "axis=rows m=200 n=136 k=72 offsets=70,150,200 out=fp32 bias_dtype=bf16 bias_axes=gn", {"grouped_gemm_bf16_general_m128n128"}),
            ("scaled_gemm", "m=70 n=130 k=96 a_dtype=e5m2 b_dtype=e5m2 bias=bf16", {"scaled_gemm_e5m2_general_m128n128"}),
            ("mx_quantise", "m=33 k=288 out=e2m1", {"mx_quantise"}),
        ):
            out, errors = self.run_tool("verify", operator, "--device", "emulator", "--case", f"x {case}", FLYDSL_EMU_ARCH="gfx90a", FLYDSL_EMU_CHECKS="all")
            self.assertIn("1 passed, 0 failed", out)
            self.assertEqual(self.compiled(errors)[0], made, errors)

    def test_products_that_an_archive_leaves_out(self):
        archive = self.archive_of("gemm_bf16_kk_m128n128")
        # What the archive has comes first, if its conditions hold.
        out, _ = self.run_tool("explain", "gemm", "--archive", archive, "--set", "a=512x512", "--set", "b=512x512", "--set", "transpose_b=yes")
        self.assertRegex(out, r"(?m)^taken +gemm_bf16_kk_m128n128\w* \(native\)")
        self.assertRegex(out, r"(?m)^not-taken +gemm_bf16_general_m128n128 \(jit\): fits too, but is listed after the one taken$")
        out, _ = self.run_tool("explain", "gemm", "--archive", archive, "--set", "a=512x511", "--set", "b=512x511", "--set", "transpose_b=yes")
        self.assertRegex(out, r"(?m)^not-taken +gemm_bf16_kk_m128n128 \(native\): needs base addresses and strides that are multiples of 16 bytes")
        self.assertRegex(out, r"(?m)^taken +gemm_bf16_general_m128n128 \(jit\): not in the archive: would be compiled at its first use$")
        # By gfx950's own matrix instructions.
        out, errors = self.run_tool("verify", "scaled_gemm", "--device", "emulator", "--archive", archive,
                                    "--case", "x m=130 n=70 k=320 a_dtype=e2m1 b_dtype=e2m1 scales=shuffled")
        self.assertIn("1 passed, 0 failed", out)
        self.assertEqual(self.compiled(errors)[0], {"scaled_gemm_e2m1_general_m128n128"})

    def test_head_dims_beyond_the_archive(self):
        for operator, (kernels, lines) in HEAD_DIMS.items():
            cases = self.folder / f"{operator}.txt"
            cases.write_text(lines)
            rows = self.folder / f"{operator}.csv"
            out, errors = self.run_tool("verify", operator, "--device", "emulator", "--cases", cases, "--jit", "on", FLYDSL_AOT_JIT="off",
                                        FLYDSL_AOT_VERBOSE=str(rows))
            self.assertIn("2 passed, 0 failed", out)
            names = {f"{operator}_{kernel}" for kernel in kernels}
            self.assertEqual(self.compiled(errors), (names, set()))  # once, for both
            with rows.open() as stream:
                rows = list(csv.DictReader(stream))
            self.assertEqual({kernel for row in rows for kernel in row["kernel"].split("+")} & names, names)
            for row in rows:  # of the first kernel, which of gradients the archive has
                jit = row["kernel"].split("+")[0] in names
                self.assertEqual((row["backend"] == "jit", row["tuning row"] == "compiled"), (jit, jit))

    def test_element_types_that_an_archive_leaves_out(self):
        archive = self.archive_of("rms_norm_fp32_")
        shape = ("--archive", archive, "--set", "x=100x1000")
        out, _ = self.run_tool("explain", "rms_norm", *shape, "--set", "dtype=fp32")
        self.assertRegex(out, r"(?m)^taken +rms_norm_fp32_\w+ \(native\)")
        out, _ = self.run_tool("explain", "rms_norm", *shape, "--set", "dtype=bf16")
        self.assertRegex(out, r"(?m)^taken +rms_norm_bf16_\w+ \(jit\): not in the archive: would be compiled at its first use$")
        self.run_tool("explain", "rms_norm", *shape, "--set", "dtype=bf16", status=3, FLYDSL_AOT_JIT="off")
        for dtype, made in (("fp32", False), ("bf16", True)):
            case = f"x dtype={dtype} m=100 n=1000"
            out, errors = self.run_tool("verify", "rms_norm", "--device", "emulator", "--archive", archive, "--case", case)
            self.assertIn("1 passed, 0 failed", out)
            self.assertEqual(bool(self.compiled(errors)[0]), made, errors)

    def test_two_processes_at_once(self):
        line = ("verify", "rms_norm", "--device", "emulator", "--case", "x dtype=fp32 m=10 n=1024")
        both = [self.start(*line, FLYDSL_EMU_ARCH="gfx942") for _ in range(2)]
        for process in both:
            out, errors = process.communicate(timeout=600)
            self.assertEqual(process.returncode, 0, errors)
            self.assertIn("1 passed, 0 failed", out)
        self.assertEqual([path.suffix for path in self.cache.iterdir()], [".co"])
        _, errors = self.run_tool(*line, FLYDSL_EMU_ARCH="gfx942")
        self.assertEqual(self.compiled(errors)[0], set())

    def test_nothing_can_be_kept_and_no_compiler(self):
        line = ("verify", "rms_norm", "--device", "emulator", "--case", "x dtype=fp32 m=10 n=1024")
        for _ in range(2):
            out, errors = self.run_tool(*line, FLYDSL_EMU_ARCH="gfx942", FLYDSL_AOT_JIT_CACHE_DIR="/proc/none")
            self.assertIn("1 passed, 0 failed", out)
            self.assertTrue(self.compiled(errors)[0])
        for missing, status in ((("FLYDSL_AOT_HIPRTC_LIBRARY", "/nonexistent.so"), "COMPILER_NOT_FOUND"),
                                (("FLYDSL_EMU_CXX", "/nonexistent"), "COMPILE_FAILED")):
            out, errors = self.run_tool("run", "rms_norm", "--set", "x=10x1024", "--out", f"out={self.folder}/out.npy", status=4, FLYDSL_EMU_ARCH="gfx942", **dict([missing]))
            self.assertIn(status, errors)
            self.assertIn("/nonexistent", errors)


if __name__ == "__main__":
    unittest.main()
