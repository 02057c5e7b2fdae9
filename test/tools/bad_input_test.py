"""Everything a user can get wrong: one clear line on stderr, the documented exit status, no output file."""
import os
import unittest

from tool import SMOLLM2, ToolTest, write_npy

BAD, UNSUPPORTED, FAILURE = 2, 3, 4


class BadInputTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.files = {name: write_npy(self.folder / f"{name}.npy", "<u2", (1, heads, 5, 64))
                      for name, heads in (("q", 4), ("k", 2), ("v", 2))}
        self.out = self.folder / "out.npy"

    def arguments(self, without=(), settings=("dtype=bf16",), outputs=None, op="attention_forward", **inputs):
        files = {**self.files, **inputs}
        result = ["run", op, "--device", "emulator"]
        for name, file in files.items():
            if name not in without:
                result += ["--in", f"{name}={file}"]
        for setting in settings:
            result += ["--set", setting]
        for output in [f"out={self.out}"] if outputs is None else outputs:
            result += ["--out", output]
        return result

    def refused(self, status, words, extra=(), **changes):
        self.expect_error(status, words, *self.arguments(**changes), *extra)
        self.assertFalse(self.out.exists())
        self.assertEqual([path.name for path in self.folder.iterdir() if "out.npy" in path.name], [])

    def array(self, descr, shape, **kwargs):
        return write_npy(self.folder / "other.npy", descr, shape, **kwargs)

    def test_the_unchanged_command_is_good(self):
        result = self.tool(*self.arguments())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(self.out.exists())

    def test_fp32_is_refused_by_the_library(self):
        files = {name: write_npy(self.folder / f"{name}32.npy", "<f4", (1, heads, 509, 64))
                 for name, heads in (("q", 9), ("k", 3), ("v", 3))}
        for settings in ((), ("dtype=bf16", "causal=top-left", "scale=0.125")):
            self.refused(UNSUPPORTED, ["UNSUPPORTED_DTYPE", "fp32", "fp16", "bf16"], settings=settings, **files)
        files = {name: write_npy(self.folder / f"{name}64.npy", "<f8", (1, 1, 2, 64)) for name in "qkv"}
        self.refused(UNSUPPORTED, ["UNSUPPORTED_DTYPE", "fp64"], settings=(), **files)

    def test_files(self):
        self.refused(BAD, ["missing.npy", "No such file"], q=self.folder / "missing.npy")
        self.refused(BAD, "not a regular file", q=self.folder)
        self.refused(BAD, "not a .npy file", q=__file__)
        good = self.files["q"].read_bytes()
        cut = self.folder / "cut.npy"
        for length in (0, 5, 9, 20, len(good) - 1):
            cut.write_bytes(good[:length])
            self.refused(BAD, "cut.npy", q=cut)
        cut.write_bytes(good + b"x")
        self.refused(BAD, "claims", q=cut)
        self.refused(BAD, "big-endian", q=self.array(">f2", (1, 4, 5, 64)))
        self.refused(BAD, ["uint8", "dtype=e4m3"], q=self.array("|u1", (1, 4, 5, 64)))

    def test_shapes(self):
        self.refused(BAD, ["q has 3 axes", "4x5x64"], q=self.array("<u2", (4, 5, 64)))
        self.refused(BAD, "INVALID_SHAPE", q=self.array("<u2", (1, 3, 5, 64)))  # 3 heads over 2
        self.refused(BAD, "INVALID_SHAPE", k=self.array("<u2", (1, 1, 5, 64)))  # k and v disagree
        self.refused(BAD, "INVALID_SHAPE", v=self.array("<u2", (1, 2, 6, 64)))
        self.refused(BAD, "INVALID_SHAPE", q=self.array("<u2", (2, 4, 5, 64)))  # batches
        self.refused(BAD, "INVALID_SHAPE", q=self.array("<u2", (1, 4, 5, 128)))  # head dims
        for head_dim in (513, 577, 4160):
            files = {name: write_npy(self.folder / f"{name}d.npy", "<u2", (1, 1, 2, head_dim)) for name in "qkv"}
            self.refused(UNSUPPORTED, ["UNSUPPORTED_HEAD_DIM", str(head_dim)], **files)

    def test_dtypes(self):
        self.refused(BAD, ["uint16", "dtype=bf16"], settings=())
        self.refused(BAD, ["fp8", "bf16, fp16"], settings=("dtype=fp8",))
        self.refused(BAD, "float16", q=self.array("<f2", (1, 4, 5, 64)))
        self.refused(BAD, "INVALID_DTYPE", settings=("dtype=bf16",), k=self.array("<f4", (1, 2, 5, 64)))

    def test_settings(self):
        def setting(words, *settings, status=BAD):
            self.refused(status, words, settings=("dtype=bf16", *settings))

        setting("INVALID_SCALE", "scale=nan")
        setting("INVALID_SCALE", "scale=inf")
        setting("not a number", "scale=1/8")
        setting("not a number", "scale=1e99")
        setting("NAME=VALUE", "scale=")
        setting("NAME=VALUE", "scale")
        setting("NAME=VALUE", "=1")
        setting(["'sclae' is unknown", "scale"], "sclae=1")
        setting("twice", "scale=1", "scale=2")
        setting(["causal=yes", "top-left"], "causal=yes")
        setting("either causal", "causal=top-left", "left=3")
        setting("not a 64-bit integer", "right=99999999999999999999")
        setting("INVALID_MASK", "right=0")  # no anchor
        setting("INVALID_MASK", "right=-7", "anchor=top-left")
        setting("layout=sbhd", "layout=sbhd")

    def test_values_in_keys(self):
        decode = ("explain", "attention_decode", "--set=q=1x16x1x576", "--set=k=1x1x64x576")
        self.expect_error(BAD, ["v_in_k=577", "1 to", "576"], *decode, "--set=v_in_k=577")
        self.expect_error(BAD, ["v_in_k=512", "given, too"], *decode, "--set=v_in_k=512", "--set=v=1x1x64x512")
        self.expect_error(BAD, ["v=SHAPE", "v_in_k=DV", "missing"], *decode)

    def test_gradients(self):
        shapes = [f"--set={name}=1x2x8x64" for name in ("q", "k", "v", "out", "dout")] + ["--set=lse=1x2x8"]
        run = ("run", "attention_backward", "--device=emulator", *shapes)
        self.expect_error(BAD, ["--out", "none is given"], *run)
        self.expect_error(BAD, ["--out dbias", "no bias"], *run, f"--out=dbias={self.out}")
        self.expect_error(BAD, ["'kept' is unknown", "dsinks"], *run, f"--out=kept={self.out}")
        self.expect_error(BAD, ["lse=SHAPE", "missing"], *run[:-1], f"--out=dq={self.out}")

    def test_names_and_outputs(self):
        self.refused(BAD, ["v=", "missing"], without=("v",))
        self.refused(BAD, ["out=", "missing"], outputs=())
        self.refused(BAD, "'biased' is unknown", biased=self.files["q"])
        self.refused(BAD, "'dq' is unknown", outputs=(f"out={self.out}", "dq=x.npy"))
        self.refused(BAD, "twice", extra=["--in", f"q={self.files['q']}"])
        self.refused(BAD, "twice", outputs=(f"out={self.out}", f"out={self.out}"))
        self.refused(BAD, "also the file of", outputs=(f"out={self.out}", f"lse={self.out}"))
        self.refused(BAD, "also the file of", outputs=(f"out={self.out}", f"lse={self.out.parent}/./{self.out.name}"))
        self.refused(BAD, "No such file", outputs=(f"out={self.folder}/no/such/out.npy",))
        self.refused(BAD, "not a regular file", outputs=("out=/dev/null",))
        self.refused(BAD, "not a regular file", outputs=(f"out={self.folder}",))
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"))

    def test_an_existing_output_survives_a_failure(self):
        self.out.write_text("precious")
        self.expect_error(BAD, "INVALID_SCALE", *self.arguments(settings=("dtype=bf16", "scale=nan")))
        self.assertEqual(self.out.read_text(), "precious")

    def test_usage(self):
        self.expect_error(BAD, "'attention' is unknown", *self.arguments(op="attention"))
        self.expect_error(BAD, "command is missing")
        self.expect_error(BAD, "walk", "walk")
        self.expect_error(BAD, "--device", "info", "--device", "cuda")
        self.expect_error(BAD, "device", "run", "attention_forward", "--device", "none", "--arch", "gfx950",
                          *self.arguments()[4:])
        self.expect_error(BAD, "1x2xx", "explain", "attention_forward", "--set", "q=1x2xx", "--set", "k=1x1x1x64",
                          "--set", "v=1x1x1x64")
        self.expect_error(BAD, "v", "explain", "attention_forward", "--set", "q=1x1x1x64", "--set", "k=1x1x1x64")
        help_text = self.tool("run", "--help")
        self.assertEqual(help_text.returncode, 0)
        self.assertIn("bottom-right", help_text.stdout)

    def test_device_and_archive(self):
        self.expect_error(FAILURE, "DEVICE_LIBRARY_NOT_FOUND", "info", "--device", "hip",
                          FLYDSL_AOT_HIP_LIBRARY="/no/such/libamdhip64.so")
        self.expect_error(FAILURE, "DEVICE_LIBRARY_NOT_FOUND", "info", "--device", "emulator",
                          FLYDSL_AOT_EMULATOR_LIBRARY=str(SMOLLM2 / "README.md"))
        self.expect_error(UNSUPPORTED, "UNSUPPORTED_ARCH", "info", "--device", "emulator", "--arch", "gfx942")
        missing = self.folder / "missing.fda"
        self.expect_error(FAILURE, ["ARCHIVE_NOT_FOUND", str(missing)], *self.arguments(), "--archive", missing)
        damaged = self.folder / "flydsl_aot.gfx950.fda"
        damaged.write_bytes(b"not an archive" * 20)
        self.expect_error(FAILURE, "ARCHIVE_CORRUPT", *self.arguments(), "--archive", damaged)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
