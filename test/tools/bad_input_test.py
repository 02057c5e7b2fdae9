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

    def expect_bad(self, operator, arguments, outputs, cases):
        """Each case of (exit status, words, changed settings) from what `arguments` are, by run with files for `outputs` and by
        explain. Changes to None take the argument away."""
        for status, words, changes in cases:
            settings = {**arguments, **changes}
            shown = [f"--set={name}={value}" for name, value in settings.items() if value is not None]
            files = [f"--out={name}={self.folder / name}.npy" for name in outputs]
            self.expect_error(status, words, "run", operator, "--device=emulator", *shown, *files)
            self.expect_error(status, words, "explain", operator, *shown)
            self.assertEqual([name for name in outputs if (self.folder / f"{name}.npy").exists()], [])

    def test_gemm(self):
        self.expect_bad("gemm", {"a": "8x64", "b": "64x8"}, ["d"], (
            (BAD, ["--set a=-8x64", "shape"], {"a": "-8x64"}),
            (BAD, ["--set b=64xnan", "shape"], {"b": "64xnan"}),
            (BAD, ["a=SHAPE", "missing"], {"a": None}),
            (BAD, ["a has 1 axes", "2 or 3"], {"a": "8"}),
            (BAD, ["INVALID_SHAPE", "a has K = 63", "b has K = 64"], {"a": "8x63"}),
            (BAD, ["INVALID_SHAPE", "b has size 3"], {"a": "2x8x64", "b": "3x64x8"}),
            (BAD, ["INVALID_SHAPE", "c is absent", "beta is 1"], {"beta": "1"}),
            (BAD, ["INVALID_SHAPE", "c has size 7"], {"c": "8x7"}),
            (BAD, ["INVALID_SHAPE", "bias_n", "size 7"], {"bias_n": "7"}),
            (BAD, ["INVALID_SCALE", "alpha is nan"], {"alpha": "nan"}),
            (BAD, ["INVALID_SCALE", "beta is -inf"], {"beta": "-inf", "c": "8x8"}),
            (BAD, ["alpha=1e39", "fp32"], {"alpha": "1e39"}),
            (BAD, ["activation=swish", "gelu_tanh"], {"activation": "swish"}),
            (BAD, ["transpose_a=1", "no, yes"], {"transpose_a": "1"}),
            (BAD, ["INVALID_DTYPE", "a is bf16", "b is fp16"], {"b_dtype": "fp16"}),
            (BAD, ["INVALID_ARGUMENT", "a_descale", "e4m3"], {"a_descale": "1"}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "e2m1"], {"dtype": "e2m1"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "M is 9223372036854775807"], {"a": "9223372036854775807x64"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "2^31"], {"a": "1073741824x64", "b": "64x1073741824"}),
            (BAD, ["a=99999999999999999999", "64-bit"], {"a": "99999999999999999999x64"})))

    def test_grouped_gemm(self):
        self.expect_bad("grouped_gemm", {"a": "8x64", "b": "2x64x8", "offsets": "3,8"}, ["d"], (
            (BAD, ["b=SHAPE", "missing"], {"b": None}),
            (BAD, ["INVALID_SHAPE", "offsets is absent"], {"offsets": None}),
            (BAD, ["INVALID_SHAPE", "offsets", "must be absent"], {"a": "2x8x64"}),
            (BAD, ["INVALID_SHAPE", "offsets has G = 3", "b has G = 2"], {"offsets": "3,8,8"}),
            (BAD, ["offsets=3,,8", "32-bit integers"], {"offsets": "3,,8"}),
            (BAD, ["offsets=4294967296,8", "32-bit integers"], {"offsets": "4294967296,8"}),
            (BAD, ["INVALID_SHAPE", "bias has G = 3"], {"bias": "3x8"}),
            (BAD, ["INVALID_DTYPE", "bias is e4m3"], {"bias": "8", "bias_dtype": "e4m3"}),
            (BAD, ["INVALID_DTYPE", "d is e4m3"], {"out_dtype": "e4m3"}),
            (BAD, ["a_order=kn", "mk, km"], {"a_order": "kn"}),
            (BAD, ["INVALID_SHAPE", "a_scale is absent", "a is e4m3"], {"dtype": "e4m3"}),
            (BAD, ["INVALID_ARGUMENT", "a_scale has rank 2", "a is bf16"], {"a_scale": "8x2"}),
            (BAD, ["scales=blocked", "plain, shuffled"], {"scales": "blocked"}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "a is fp32", "fp16, bf16"], {"dtype": "fp32"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "M = 1073741825"], {"a": "1073741825x64"})))
        offsets = self.array("<f4", (2,))
        self.expect_error(BAD, ["INVALID_DTYPE", "offsets is fp32"], "run", "grouped_gemm", "--device=emulator", "--set=a=8x64",
                          "--set=b=2x64x8", f"--in=offsets={offsets}", f"--out=d={self.out}")

    def test_scaled_gemm(self):
        arguments = {"dtype": "e4m3", "a": "8x64", "b": "8x64", "a_scale": "8x2", "b_scale": "8x2"}
        self.expect_bad("scaled_gemm", arguments, ["d"], (
            (BAD, ["b_scale=SHAPE", "missing"], {"b_scale": None}),
            (BAD, ["INVALID_SHAPE", "a_scale is 8 x 3", "8 x 2"], {"a_scale": "8x3"}),
            (BAD, ["INVALID_SHAPE", "a_scale has rank 2"], {"a": "2x8x64"}),
            (BAD, ["INVALID_SHAPE", "32 x 8", "shuffled"], {"scales": "shuffled"}),
            (BAD, ["scales=blocked", "plain, shuffled"], {"scales": "blocked"}),
            (BAD, ["INVALID_DTYPE", "b e2m1x2"], {"dtype_b": "e2m1"}),
            (BAD, ["a has", "2^63", "last axis"], {"dtype": "e2m1", "a": "8x4611686018427387904"}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "a is bf16"], {"dtype": None}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "d is e4m3"], {"out_dtype": "e4m3"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "K = 16"], {"a": "8x16", "b": "8x16", "a_scale": "8x0", "b_scale": "8x0"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "M = 9223372036854775807"], {"a": "9223372036854775807x64", "scales": "shuffled"})))

    def test_mx_quantise(self):
        self.expect_bad("mx_quantise", {"x": "8x64"}, ["out", "scale"], (
            (BAD, ["x=SHAPE", "missing"], {"x": None}),
            (BAD, ["rounding=up", "nearest, stochastic"], {"rounding": "up"}),
            (BAD, ["seed=nan", "64-bit"], {"seed": "nan"}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "out is fp16"], {"out_dtype": "fp16"}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "x is e4m3"], {"dtype": "e4m3"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "K = 63"], {"x": "8x63"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "M is 9223372036854775807"], {"x": "9223372036854775807x64", "scales": "shuffled"})))
        for given, other in (("out", "scale"), ("scale", "out")):
            self.expect_error(BAD, f"--out {other}=... is missing", "run", "mx_quantise", "--device=emulator", "--set=x=8x64",
                              f"--out={given}={self.out}")

    def test_rms_norm(self):
        self.expect_bad("rms_norm", {"x": "8x64"}, ["out"], (
            (BAD, ["x has 1 axes"], {"x": "64"}),
            (BAD, ["INVALID_SCALE", "eps is nan"], {"eps": "nan"}),
            (BAD, ["INVALID_SCALE", "eps is -1"], {"eps": "-1"}),
            (BAD, ["INVALID_SHAPE", "weight has N = 63"], {"weight": "63"}),
            (BAD, ["INVALID_SHAPE", "residual has N = 63"], {"residual": "8x63"}),
            (BAD, ["INVALID_ARGUMENT", "weight_offset is 0.5"], {"weight_offset": "0.5"}),
            (BAD, ["INVALID_DTYPE", "out is fp16", "e4m3"], {"out_dtype": "fp16"}),
            (BAD, ["scales=tensor", "row, block"], {"scales": "tensor"}),
            (BAD, ["scales=block", "out_dtype=e4m3"], {"scales": "block"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "N = 2147483648"], {"x": "1x2147483648"})))
        run = ("run", "rms_norm", "--device=emulator", "--set=x=8x64", f"--out=out={self.out}")
        scale = f"--out=out_scale={self.folder}/scale.npy"
        self.expect_error(BAD, ["--out out_scale=... is missing", "8-bit"], *run, "--set=out_dtype=e4m3")
        self.expect_error(BAD, ["--out out_scale", "give none", "8-bit"], *run, scale)
        self.expect_error(BAD, ["INVALID_ARGUMENT", "sum", "residual"], *run, f"--out=sum={self.folder}/sum.npy")
        self.assertFalse(self.out.exists())

    def test_norm_backward(self):
        for operator, more in (("rms_norm_backward", {}), ("layer_norm_backward", {"mean": "8"})):
            tensors = {"x": "8x64", "dout": "8x64", "rstd": "8", **more}
            self.expect_bad(operator, tensors, ["dx", "dweight"], (
                (BAD, ["x has 1 axes"], {"x": "64"}),
                (BAD, ["INVALID_SHAPE", "dout has N = 63"], {"dout": "8x63"}),
                (BAD, ["INVALID_SHAPE", "dsum has M = 7"], {"dsum": "7x64"}),
                (BAD, ["INVALID_SHAPE", "rstd has M = 9"], {"rstd": "9"}),
                (BAD, ["INVALID_SHAPE", "weight has N = 63"], {"weight": "63"}),
                (BAD, ["INVALID_ARGUMENT", "weight_offset is 0.5"], {"weight_offset": "0.5"}),
                (BAD, ["INVALID_ARGUMENT", "weight_offset is 1", "no weight"], {"weight_offset": "1"}),
                (BAD, ["INVALID_DTYPE", "dweight is e4m3", "fp32, fp16 or bf16"], {"dweight_dtype": "e4m3"}),
                (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "x is e5m2"], {"dtype": "e5m2"}),
                (UNSUPPORTED, ["UNSUPPORTED_SIZE", "N = 2147483648"], {"x": "1x2147483648", "dout": "1x2147483648", "rstd": "1",
                                                                      **({"mean": "1"} if more else {})})))
            run = ("run", operator, "--device=emulator", *(f"--set={name}={shape}" for name, shape in tensors.items()))
            self.expect_error(BAD, ["INVALID_ARGUMENT", "dsum is given", "no dx"], *run, "--set=dsum=8x64", f"--out=dweight={self.out}")
            self.assertFalse(self.out.exists())
        self.expect_error(BAD, ["--in mean", "missing"], "run", "layer_norm_backward", "--device=emulator", "--set=x=8x64",
                          "--set=dout=8x64", "--set=rstd=8", f"--out=dx={self.out}")

    def test_topk(self):
        self.expect_bad("topk", {"x": "8x64", "k": "3"}, ["values", "indices"], (
            (BAD, ["INVALID_SHAPE", "K = 65", "N = 64"], {"k": "65"}),
            (BAD, ["k=-1", "0 or more"], {"k": "-1"}),
            (BAD, ["k=1.5", "64-bit integer"], {"k": "1.5"}),
            (BAD, ["axis=2", "x has 2 axes"], {"axis": "2"}),
            (BAD, ["axis=-3", "x has 2 axes"], {"axis": "-3"}),
            # Beyond 32 bits: not what its low word would say.
            (BAD, ["axis=4294967295", "x has 2 axes"], {"axis": "4294967295"}),
            (BAD, ["axis=-9223372036854775808", "x has 2 axes"], {"axis": "-9223372036854775808"}),
            (BAD, ["smallest=1", "no, yes"], {"smallest": "1"}),
            (BAD, ["index_dtype=int16", "int64, int32"], {"index_dtype": "int16"}),
            (BAD, ["x=1x1x1x1x1x1x1x1x1", "shape"], {"x": "1x1x1x1x1x1x1x1x1"}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "x is e4m3"], {"dtype": "e4m3"})))

    def test_topk_softmax(self):
        self.expect_bad("topk_softmax", {"x": "8x64", "k": "3"}, ["weights", "indices"], (
            (BAD, ["INVALID_SHAPE", "K = 65", "N = 64"], {"k": "65"}),
            (BAD, ["k=-1", "0 or more"], {"k": "-1"}),
            (BAD, ["sum=some", "all, chosen"], {"sum": "some"}),
            (BAD, ["weights_dtype=bf16", "fp32, same"], {"weights_dtype": "bf16"}),
            (BAD, ["index_dtype=int16", "int32, int64"], {"index_dtype": "int16"}),
            (BAD, ["x has 1 axes"], {"x": "64"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "K 17", "at most 16"], {"k": "17"}),
            (UNSUPPORTED, ["UNSUPPORTED_SIZE", "N is 513", "at most 512"], {"x": "8x513"}),
            (UNSUPPORTED, ["UNSUPPORTED_DTYPE", "x is e4m3"], {"dtype": "e4m3"})))

    def test_bench_on_another_device(self):
        bench = ("bench", "topk", "--device=cuda")
        self.expect_error(BAD, ["--device cuda", "--peers torch"], *bench)
        self.expect_error(BAD, ["--device cuda", "--peers torch"], *bench, "--peers=aiter")
        self.expect_error(BAD, ["--device cuda", "problems of its own"], *bench, "--peers=torch", "--set=x=8x64")
        self.expect_error(BAD, ["gemm", "rms_norm, layer_norm"], "bench", "topk", "gemm", "--device=cuda", "--peers=torch")
        self.expect_error(BAD, ["one operator"], "bench", "topk", "rms_norm", "--device=emulator", "--set=x=8x64")

    def test_files_of_every_operator(self):
        others = {"gemm": ("a", "d", ["b=64x8"]), "grouped_gemm": ("a", "d", ["b=2x64x8", "offsets=3,8"]),
                  "scaled_gemm": ("a", "d", ["b=8x64", "a_scale=8x2", "b_scale=8x2"]), "rms_norm": ("x", "out", []),
                  "mx_quantise": ("x", "out", []), "topk": ("x", "values", [])}
        other_output = {"mx_quantise": "scale", "topk": "indices"}
        garbage = self.folder / "garbage.npy"
        garbage.write_bytes(bytes(range(256)))
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%s, 64)}\n"
        negative, huge = self.folder / "negative.npy", self.folder / "huge.npy"
        for path, size in ((negative, b"-8"), (huge, b"9223372036854775807")):
            text = header % size
            path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(2048))
        bits = write_npy(self.folder / "bits.npy", "<u2", (8, 64))
        doubles = write_npy(self.folder / "doubles.npy", "<f8", (8, 64))
        for operator, (name, output, settings) in others.items():
            command = ["run", operator, "--device=emulator", *(f"--set={text}" for text in settings), f"--out={output}={self.out}"]
            if operator in other_output:
                command.append(f"--out={other_output[operator]}={self.folder}/second.npy")
            for status, words, file in (
                    (BAD, "not a .npy file", garbage), (BAD, "malformed header", negative), (BAD, "claims", huge),
                    (BAD, "No such file", self.folder / "missing.npy"), (BAD, "not a regular file", "/dev/zero"),
                    (BAD, "uint16", bits),
                    (UNSUPPORTED, ["UNSUPPORTED_DTYPE", f"{name} is fp64"], doubles)):
                self.expect_error(status, words if status != BAD else [f"--in {name}", words], *command, f"--in={name}={file}")
                self.assertFalse(self.out.exists())

    def test_bench(self):
        bench = ("bench", "--device=emulator")
        self.expect_error(BAD, ["a has K = 63"], *bench, "gemm", "--set=a=8x63", "--set=b=64x8")
        self.expect_error(BAD, ["alpha is inf"], *bench, "gemm", "--set=a=8x64", "--set=b=64x8", "--set=alpha=inf")
        self.expect_error(BAD, "no kernel is needed", *bench, "gemm", "--set=a=0x64", "--set=b=64x8")
        self.expect_error(BAD, ["--out out_scale", "give none"], *bench, "rms_norm", "--set=x=8x64", "--out=out_scale")
        self.expect_error(BAD, ["--out x", "no output of topk"], *bench, "topk", "--set=x=8x64", "--out=x")
        self.expect_error(BAD, ["'hipblaslt' is unknown", "triton"], *bench, "gemm", "--set=a=8x64", "--set=b=64x8",
                          "--peers=hipblaslt")
        self.expect_error(BAD, "--device emulator", "bench", "gemm", "--device=none", "--set=a=8x64", "--set=b=64x8")

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
