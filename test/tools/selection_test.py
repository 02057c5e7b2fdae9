"""Which kernel the main pass of common problems runs on: where a fast one gives its place to a slower one, or stops taking a
problem, a row here changes."""
import re
import unittest

from tool import ToolTest

# (B, Hq, Hkv, Sq, Sk, D, Dv), settings; what attention_forward takes, what attention_backward takes for dk and dv or for all.
LARGE, SMALL = (4, 16, 16, 4096, 4096), (1, 8, 8, 512, 512)
CAUSAL, FP16 = "causal=top-left", "dtype=fp16"
WINDOW = ("left=1024", "right=0", "anchor=bottom-right")
LENGTHS = ("seqused_q=4096,1000,7,0", "seqused_k=4096,1000,7,0")
PROBLEMS = (
    ((*LARGE, 128, 128), (), "bf16_d128_none_pipelined_m256n64", "bf16_d128_none_fused_m32n256"),
    ((*LARGE, 128, 128), (CAUSAL,), "bf16_d128_causal_direct_m128n64", "bf16_d128_causal_fused_m32n256"),
    ((*LARGE, 128, 128), (FP16,), "fp16_d128_none_pipelined_m256n64", "fp16_d128_none_fused_m32n256"),
    ((*LARGE, 128, 128), (FP16, "causal=bottom-right"), "fp16_d128_causal_direct_m128n64", "fp16_d128_causal_fused_m32n256"),
    ((16, 32, 8, 8192, 8192, 128, 128), (CAUSAL,), "bf16_d128_causal_pipelined_m256n64", "bf16_d128_causal_fused_m32n256"),
    ((*SMALL, 128, 128), (), "bf16_d128_none_direct_m128n64", "bf16_d128_none_fused_m32n256"),
    ((*SMALL, 128, 128), (CAUSAL,), "bf16_d128_causal_direct_m128n64", "bf16_d128_keys_plain_m64n128"),
    # Few key blocks: by one kernel, unless each of them meets the rows of several heads.
    ((1, 16, 16, 1024, 1024, 128, 128), (CAUSAL,), "bf16_d128_causal_direct_m128n64", "bf16_d128_causal_fused_m32n256"),
    ((1, 32, 8, 1024, 1024, 128, 128), (CAUSAL,), "bf16_d128_causal_direct_m128n64", "bf16_d128_keys_plain_m64n128"),
    ((1, 32, 8, 2048, 2048, 64, 64), (), "bf16_d64_none_direct_m128n64", "bf16_d64_keys_plain_m64n128"),
    ((64, 16, 16, 128, 128, 64, 64), (), "bf16_d64_none_direct_m128n64", "bf16_d64_keys_plain_m64n128"),
    ((16, 16, 16, 256, 256, 64, 64), (), "bf16_d64_none_direct_m128n64", "bf16_d64_none_fused_m64n256"),
    ((4, 32, 8, 2048, 2048, 128, 128), (CAUSAL,), "bf16_d128_causal_direct_m128n64", "bf16_d128_causal_fused_m32n256"),
    ((*LARGE, 128, 128), WINDOW, "bf16_d128_window_direct_m128n64", "bf16_d128_keys_plain_m64n128"),
    ((*LARGE, 128, 128), LENGTHS, "bf16_d128_none_pipelined_m256n64", "bf16_d128_keys_plain_m64n128"),
    ((*LARGE, 64, 64), (), "bf16_d64_none_alternating_m128n64", "bf16_d64_none_fused_m64n256"),
    ((*LARGE, 64, 64), (CAUSAL,), "bf16_d64_causal_alternating_m128n64", "bf16_d64_causal_fused_m64n256"),
    ((*SMALL, 64, 64), (CAUSAL,), "bf16_d64_causal_direct_m128n64", "bf16_d64_keys_plain_m64n128"),
    ((*LARGE, 64, 64), WINDOW, "bf16_d64_window_direct_m128n64", "bf16_d64_keys_plain_m64n128"),
    ((*LARGE, 96, 96), (), "bf16_d96_none_alternating_m128n32", "bf16_d96_keys_plain_m64n128"),
    ((*LARGE, 72, 72), (), "bf16_d96_none_direct_m128n64", "bf16_d96_keys_plain_m64n128"),
    ((*LARGE, 192, 128), (CAUSAL,), "bf16_d192x128_causal_direct_m128n64", "bf16_d192x128_keys_plain_m64n128"),
    ((*SMALL, 192, 128), (), "bf16_d192x128_none_direct_m128n64", "bf16_d192x128_keys_plain_m64n128"),
    ((*LARGE, 256, 256), (CAUSAL,), "bf16_d256_causal_direct_m256n64", "bf16_d256_keys_plain_m64n128"),
    ((*SMALL, 576, 512), (), "bf16_d576x512_general_m128n64", "bf16_d576x512_keys_general_m64n32"),
    ((*SMALL, 100, 100), (), "bf16_d128_general_m128n64", "bf16_d128_keys_general_m64n128"),
    ((*LARGE, 128, 128), ("bias=1x16x4096x4096",), "bf16_d128_features_m128n64", "bf16_d128_keys_general_m64n128"),
    ((*LARGE, 128, 128), ("softcap=30",), "bf16_d128_features_m128n64", "bf16_d128_keys_general_m64n128"),
    ((*LARGE, 64, 64), ("dropout_p=0.1",), "bf16_d64_features_m128n64", "bf16_d64_keys_general_m64n128"),
)

# Rows, columns, dtype; which kernel writes dx: rows that registers hold, that LDS holds, and longer ones.
NORM_GRADIENTS = (
    ("rms_norm", 16384, 4096, "bf16", "bf16_t256x2"),
    ("rms_norm", 8192, 8192, "bf16", "bf16_t512x2"),
    ("rms_norm", 4096, 8200, "bf16", "bf16_t512x4_held"),
    ("rms_norm", 4096, 16384, "fp16", "fp16_t512x4_held"),
    ("rms_norm", 2048, 32768, "bf16", "bf16_t512x8_held"),
    ("rms_norm", 2048, 16384, "fp32", "fp32_t512x8_held"),
    ("rms_norm", 2048, 32776, "bf16", "bf16_columns"),
    ("rms_norm", 2048, 2049, "bf16", "bf16_columns_narrow"),
    ("layer_norm", 16384, 4096, "fp32", "fp32_t512x2"),
    ("layer_norm", 4096, 16384, "bf16", "bf16_t512x4_held"),
    ("layer_norm", 2048, 16384, "fp32", "fp32_t512x8_held"),
    ("layer_norm", 2048, 32768, "bf16", "bf16_columns"),
)


class SelectionTest(ToolTest):
    def taken(self, op, problem, settings):
        batches, heads_q, heads_kv, rows, keys, head_dim, value_dim = problem
        shapes = {
            "q": (batches, heads_q, rows, head_dim),
            "k": (batches, heads_kv, keys, head_dim),
            "v": (batches, heads_kv, keys, value_dim),
        }
        if op == "attention_backward":
            shapes |= {name: (batches, heads_q, rows, value_dim) for name in ("out", "dout")}
            shapes["lse"] = (batches, heads_q, rows)
        arguments = [f"--set={name}={'x'.join(map(str, shape))}" for name, shape in shapes.items()]
        result = self.tool("explain", op, "--arch", "gfx950", *arguments, *(f"--set={setting}" for setting in settings))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return re.findall(rf"^taken +{op}_(\w+) \(native\)", result.stdout, re.MULTILINE)

    def test_common_problems_run_on_the_kernels_made_for_them(self):
        for problem, settings, forward, backward in PROBLEMS:
            with self.subTest(problem=problem, settings=settings):
                self.assertEqual(self.taken("attention_forward", problem, settings), [forward])
                prepare, main, *_ = self.taken("attention_backward", problem, settings)
                self.assertEqual((prepare, main), (f"{backward[:4]}_prepare", backward))

    def test_gradients_of_norms_read_rows_once_where_a_kernel_holds_them(self):
        for norm, rows, columns, dtype, kernel in NORM_GRADIENTS:
            with self.subTest(norm=norm, rows=rows, columns=columns, dtype=dtype):
                operator = f"{norm}_backward"
                shapes = {name: f"{rows}x{columns}" for name in ("x", "dout")} | {"rstd": rows, "weight": columns}
                if norm == "layer_norm":
                    shapes["mean"] = rows
                arguments = [f"--set={name}={shape}" for name, shape in shapes.items()]
                result = self.tool("explain", operator, "--arch", "gfx950", *arguments, f"--set=dtype={dtype}")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                taken = re.findall(rf"^taken +{operator}_(\w+) \(native\)", result.stdout, re.MULTILINE)
                # Of two kernels that read rows twice the first leaves sums, the last adds up weights' gradients.
                twice = "columns" in kernel
                self.assertEqual(["sums" in name for name in taken], [True, False, False] if twice else [False, False])
                self.assertEqual(taken[twice:], [kernel, "totals"])


if __name__ == "__main__":
    unittest.main()
