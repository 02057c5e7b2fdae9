"""flydsl-aot run, info and explain on good input."""
import array
import math
import unittest

from tool import ARCHIVE, SMOLLM2, ToolTest, read_npy, write_npy


def floats_of_bf16(data):
    wide = array.array("I", (value << 16 for value in array.array("H", data)))
    return array.array("f", wide.tobytes())


class RunTest(ToolTest):
    def run_smollm2(self, layer, *extra, folder=SMOLLM2):
        out, lse = self.folder / "o.npy", self.folder / "l.npy"
        inputs = [f"--in={name}={folder}/layer{layer}_{name}.npy" for name in "qkv"]
        result = self.tool("run", "attention_forward", "--device", "emulator", "--arch", "gfx950", *inputs,
                           "--set", "dtype=bf16", "--set", "causal=top-left", "--set", "scale=0.125",
                           "--out", f"out={out}", "--out", f"lse={lse}", *extra)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout, read_npy(out), read_npy(lse)

    def test_smollm2_layers(self):
        for layer in ("00", "14"):
            text, (out_descr, out_shape, out_data), (lse_descr, lse_shape, lse_data) = self.run_smollm2(layer)
            self.assertEqual((out_descr, out_shape), ("<u2", (1, 9, 509, 64)))
            self.assertEqual((lse_descr, lse_shape), ("<f4", (1, 9, 509)))
            expected = array.array("f", read_npy(SMOLLM2 / f"layer{layer}_lse.npy")[2])
            for got, want in zip(array.array("f", lse_data), expected):
                self.assertLess(abs(got - want), 1e-4)
            # Row 0 sees key 0 alone, so it is V's row 0 itself, whatever the scores; head h uses V's head h // 3.
            v = read_npy(SMOLLM2 / f"layer{layer}_v.npy")[2]
            for head in range(9):
                row = out_data[head * 509 * 128:head * 509 * 128 + 128]
                self.assertEqual(row, v[head // 3 * 509 * 128:head // 3 * 509 * 128 + 128])
            # Row 1 is a mean of two rows weighted by scores that are computed here.
            q, k = (floats_of_bf16(read_npy(SMOLLM2 / f"layer{layer}_{n}.npy")[2]) for n in "qk")
            values, result = floats_of_bf16(v), floats_of_bf16(out_data)
            for head in range(9):
                base, group = head * 509 * 64, head // 3 * 509 * 64
                scores = [0.125 * sum(q[base + 64 + d] * k[group + 64 * j + d] for d in range(64)) for j in (0, 1)]
                weight = 1 / (1 + math.exp(scores[1] - scores[0]))
                for d in range(64):
                    first, second = weight * values[group + d], (1 - weight) * values[group + 64 + d]
                    bound = 1.25 / 256 * (abs(first + second) + abs(first) + abs(second))
                    self.assertLessEqual(abs(result[base + 64 + d] - (first + second)), bound)
            self.assertIn("kernel     attention_forward_bf16_d64_causal_direct_m128n64", text)
            self.assertIn("EMULATED gfx950", text)
            self.assertIn("not a GPU time", text)
            self.assertIn("native", text)

    def test_bshd_files_hold_the_same_result(self):
        _, (_, _, out_bhsd), (_, _, lse_bhsd) = self.run_smollm2("00", "--repeat=0")

        def swap_heads_and_tokens(data, heads, tokens):
            rows = [data[i * 128:(i + 1) * 128] for i in range(heads * tokens)]
            return b"".join(rows[h * tokens + s] for s in range(tokens) for h in range(heads))

        for name, heads in (("q", 9), ("k", 3), ("v", 3)):
            data = read_npy(SMOLLM2 / f"layer00_{name}.npy")[2]
            write_npy(self.folder / f"layer00_{name}.npy", "<u2", (1, 509, heads, 64),
                      swap_heads_and_tokens(data, heads, 509))
        _, (_, shape, out), (_, lse_shape, lse) = self.run_smollm2("00", "--set=layout=bshd", "--repeat=0",
                                                                   folder=self.folder)
        self.assertEqual((shape, lse_shape), ((1, 509, 9, 64), (1, 9, 509)))
        self.assertEqual(out, swap_heads_and_tokens(out_bhsd, 9, 509))
        self.assertEqual(lse, lse_bhsd)

    def test_fp16_default_scale_and_fortran_order(self):
        # Q = 0: the mean of V. Two keys with values 1 and 3 in every channel, stored key-first in Fortran order.
        one, three = b"\x00\x3c", b"\x00\x42"
        for fortran_order, data in ((False, one * 64 + three * 64), (True, (one + three) * 64)):
            q = write_npy(self.folder / "q.npy", "<f2", (1, 1, 1, 64))
            k = write_npy(self.folder / "k.npy", "<f2", (1, 1, 2, 64))
            v = write_npy(self.folder / "v.npy", "<f2", (1, 1, 2, 64), data, fortran_order)
            out = self.folder / "o.npy"
            result = self.tool("run", "attention_forward", "--device=emulator", f"--in=q={q}", f"--in=k={k}", f"--in=v={v}",
                               f"--out=out={out}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("scale = 0.125 (default 1/sqrt(D))", result.stdout)
            self.assertEqual(read_npy(out), ("<f2", (1, 1, 1, 64), b"\x00\x40" * 64))

    def test_info_says_emulated_and_lists_kernels(self):
        result = self.tool("info", "--device", "emulator")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("EMULATED gfx950", result.stdout)
        self.assertIn(ARCHIVE.name, result.stdout)
        self.assertIn("attention_forward_fp16_d128_none_staged_m128n64", result.stdout)
        none = self.tool("info", "--device", "none", "--arch", "gfx950")
        self.assertEqual(none.returncode, 0, none.stderr)
        self.assertIn("none (queries for gfx950 only)", none.stdout)
        # Without a GPU and without being told: archives are still shown.
        self.assertEqual(self.tool("info", FLYDSL_AOT_HIP_LIBRARY="/no/such/library").returncode, 0)

    def test_explain_needs_no_device(self):
        shapes = ["--set", "q=1x9x509x64", "--set", "k=1x3x509x64", "--set", "v=1x3x509x64"]
        result = self.tool("explain", "attention_forward", *shapes, "--set", "causal=top-left")
        self.assertEqual(result.returncode, 0, result.stderr)
        candidates = [line.split()[:2] for line in result.stdout.splitlines() if line.startswith(("taken", "not-taken"))]
        self.assertEqual(candidates, [["taken", "attention_forward_bf16_d64_causal_direct_m128n64"],
                                      ["not-taken", "attention_forward_bf16_d64_causal_staged_m128n64"],
                                      ["not-taken", "attention_forward_bf16_d64_general_m128n64"],
                                      ["not-taken", "attention_forward_bf16_d64_causal_alternating_m128n64"]])
        files = [f"--in={name}={SMOLLM2}/layer00_{name}.npy" for name in "qkv"]
        from_files = self.tool("explain", "attention_forward", *files, "--set", "dtype=bf16", "--set", "causal=top-left")
        self.assertEqual(from_files.stdout.split("setting")[0], result.stdout.split("setting")[0])


if __name__ == "__main__":
    unittest.main()
