"""Every operator of a Handle against NumPy in float64. Bounds are those of the headers, for these sizes."""

import pathlib
import unittest

import numpy as np

import flydsl_aot
from flydsl_aot import _layout

HALF_ULP = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp32": 2.0**-24}
rng = np.random.default_rng(20240711)


def softmax_attention(q, k, v, scale, visible):
    """out and lse of (B, H, S, D) float64 arrays with as many heads of keys as of queries."""
    scores = np.where(visible, scale * np.einsum("bhid,bhjd->bhij", q, k), -np.inf)
    top = np.maximum(scores.max(-1, keepdims=True), -1e300)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(total > 0, weights / total, 0)
        return np.einsum("bhij,bhjd->bhid", p, v), (np.log(total) + top)[..., 0], p


class Operators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.handle = flydsl_aot.open()
        cls.tested = set()

    def array(self, *sizes, dtype="bf16"):
        """A random operand and its exact values."""
        on_device = self.handle.upload(rng.standard_normal(sizes), dtype)
        return on_device, on_device.numpy().astype(np.float64)

    def close(self, result, exact, bound):
        error = np.abs(result.numpy().astype(np.float64) - exact)
        self.assertEqual(error.shape, np.shape(exact))
        self.assertTrue((error <= bound).all(), f"{(error / np.maximum(bound, 1e-300)).max()} times the bound")

    def test_attention_forward(self):
        q, qx = self.array(1, 4, 33, 64)
        k, kx = self.array(1, 2, 47, 64)
        v, vx = self.array(1, 2, 47, 64)
        kx, vx = (np.repeat(x, 2, 1) for x in (kx, vx))
        i, j = np.ogrid[:33, :47]
        u = HALF_ULP["bf16"]
        for mask, visible in ((None, np.ones((33, 47), bool)), (flydsl_aot.causal("top-left"), j <= i),
                              (flydsl_aot.causal("bottom-right"), j <= i + 14), (flydsl_aot.Mask(5, 2, "top-left"), (j >= i - 5) & (j <= i + 2))):
            exact, lse, p = softmax_attention(qx, kx, vx, 0.125, visible)
            got = self.handle.attention_forward(q, k, v, mask=mask, lse=True)
            self.close(got.out, exact, 1.25 * u * (np.abs(exact) + np.einsum("bhij,bhjd->bhid", p, np.abs(vx))))
            finite = np.isfinite(lse)
            np.testing.assert_allclose(got.lse.numpy()[finite], lse[finite], atol=1e-4)
        seen = rng.random((1, 1, 33, 47)) < 0.5
        exact, _, p = softmax_attention(qx, kx, vx, 0.125, seen)
        got = self.handle.attention_forward(q, k, v, visible=seen)
        self.close(got.out, exact, 1.25 * u * (np.abs(exact) + np.einsum("bhij,bhjd->bhid", p, np.abs(vx))))

    def test_attention_forward_dropout_and_packed(self):
        q, qx = self.array(2, 24, 64)  # (H, total, D): sequences of 9 and 15
        cu = np.array([0, 9, 24], np.int32)
        got = self.handle.attention_forward(q, q, q, cu_seqlens_q=cu, cu_seqlens_k=cu, max_seqlen_q=15, max_seqlen_k=15, lse=True,
                                            dropout_p=0.25, dropout_seed=3, dropout_offset=5, kept=True)
        kept = got.kept.numpy()
        self.assertEqual(kept.shape, (2, 2, 15, 15))
        for index, (start, end) in enumerate(((0, 9), (9, 24))):
            x = qx[None, :, start:end]
            exact, _, p = softmax_attention(x, x, x, 0.125, np.ones((end - start,) * 2, bool))
            p = p * kept[index, :, : end - start, : end - start] / 0.75
            exact = np.einsum("bhij,bhjd->bhid", p, x)[0]
            error = np.abs(got.out.numpy()[:, start:end] - exact)
            self.assertLess((error / (1.25 * HALF_ULP["bf16"] * (np.abs(exact) + np.einsum("bhij,bhjd->bhid", p, np.abs(x))[0]) + 1e-9)).max(), 1)

    def test_attention_backward(self):
        q, qx = self.array(1, 2, 20, 32, dtype="fp16")
        k, kx = self.array(1, 2, 24, 32, dtype="fp16")
        v, vx = self.array(1, 2, 24, 32, dtype="fp16")
        dout, gx = self.array(1, 2, 20, 32, dtype="fp16")
        bias, bx = self.array(1, 1, 20, 24, dtype="fp16")
        i, j = np.ogrid[:20, :24]
        scores = 0.25 * np.einsum("bhid,bhjd->bhij", qx, kx) + bx
        p = np.exp(np.where(j <= i, scores, -np.inf))
        p /= p.sum(-1, keepdims=True)
        out = np.einsum("bhij,bhjd->bhid", p, vx)
        ds = p * (np.einsum("bhid,bhjd->bhij", gx, vx) - (gx * out).sum(-1, keepdims=True))
        got = self.handle.attention_forward(q, k, v, scale=0.25, mask=flydsl_aot.causal("top-left"), bias=bias, lse=True)
        gradients = self.handle.attention_backward(q, k, v, got.out, got.lse, dout, scale=0.25, mask=flydsl_aot.causal("top-left"),
                                                   bias=bias, dbias=True)
        exact = (0.25 * np.einsum("bhij,bhjd->bhid", ds, kx), 0.25 * np.einsum("bhij,bhid->bhjd", ds, qx),
                 np.einsum("bhij,bhid->bhjd", p, gx), ds.sum(1, keepdims=True))
        for name, right in zip(("dq", "dk", "dv", "dbias"), exact):
            error = np.linalg.norm(getattr(gradients, name).numpy() - right) / np.linalg.norm(right)
            self.assertLess(error, 4 * HALF_ULP["fp16"], name)
        self.assertIsNone(gradients.dsinks)

    def test_attention_decode(self):
        q, qx = self.array(2, 4, 1, 64)
        k, kx = self.array(2, 2, 96, 64)
        v, vx = self.array(2, 2, 96, 64)
        lengths = np.array([96, 37], np.int32)
        visible = (np.arange(96) < lengths[:, None])[:, None, None]
        exact, _, p = softmax_attention(qx, np.repeat(kx, 2, 1), np.repeat(vx, 2, 1), 0.125, visible)
        got = self.handle.attention_decode(q, k, v, seqused_k=lengths)
        magnitude = np.einsum("bhij,bhjd->bhid", p, np.abs(np.repeat(vx, 2, 1)))
        self.close(got.out, exact, 1.25 * HALF_ULP["bf16"] * (np.abs(exact) + magnitude))

    def test_gemm(self):
        a, ax = self.array(37, 48)
        b, bx = self.array(29, 48)
        bias, nx = self.array(29, dtype="fp32")
        c, cx = self.array(37, 29, dtype="fp32")
        product = 0.5 * ax @ bx.T + 2 * cx + nx
        got = self.handle.gemm(a, b.T, c, alpha=0.5, beta=2.0, bias_n=bias, activation="relu", aux=True, out_dtype="fp32")
        self.close(got.d, np.maximum(product, 0), 1e-4)
        self.close(got.aux, product, 1e-4 + np.abs(product) * HALF_ULP["bf16"])
        self.assertEqual(got.sums, {})
        gradient, gx = self.array(37, 29)
        back = self.handle.gemm(gradient, b, activation="silu", z=a, out_dtype="fp32", sums=("d_sum_n", "a_sum_m"))
        sigmoid = 1 / (1 + np.exp(-ax))
        exact = gx @ bx * sigmoid * (1 + ax * (1 - sigmoid))
        self.close(back.d, exact, 1e-4)
        self.close(back.sums["d_sum_n"], exact.sum(0), 1e-3)
        self.close(back.sums["a_sum_m"], gx.sum(1), 1e-4)
        self.assertEqual(set(back.sums), {"d_sum_n", "a_sum_m"})
        with self.assertRaisesRegex(ValueError, "sums is 'rows'; it may be 'd_sum_m', 'd_sum_n', 'a_sum_m', 'b_sum_n'"):
            self.handle.gemm(a, b.T, sums=("rows",))
        with self.assertRaisesRegex(ValueError, "z and aux are both given"):
            self.handle.gemm(gradient, b, activation="silu", z=a, aux=True)
        batched, x = self.array(3, 5, 48, dtype="fp32")
        self.close(self.handle.gemm(batched, batched.T).d, x @ x.transpose(0, 2, 1), 1e-4)

    def test_grouped_gemm(self):
        a, ax = self.array(40, 32)
        b, bx = self.array(3, 32, 16)
        ends = np.array([11, 11, 36], np.int32)
        exact = np.zeros((40, 16))
        for group, (start, end) in enumerate(((0, 11), (11, 11), (11, 36))):
            exact[start:end] = ax[start:end] @ bx[group]
        self.close(self.handle.grouped_gemm(a, b, ends, out_dtype="fp32"), exact, 1e-4)
        gradient, gx = self.array(40, 16)
        exact = np.stack([ax[s:e].T @ gx[s:e] for s, e in ((0, 11), (11, 11), (11, 36))])
        self.close(self.handle.grouped_gemm(a.T, gradient, ends, out_dtype="fp32"), exact, 1e-4)

    def test_mx_quantise_and_scaled_gemm(self):
        a, b = rng.standard_normal((5, 64)).astype(np.float32), rng.standard_normal((7, 64)).astype(np.float32)
        for dtype, layout in (("e4m3", "plain"), ("e2m1x2", "plain"), ("e5m2", "shuffled-32-8")):
            left, right = (self.handle.mx_quantise(x, dtype, scale_layout=layout) for x in (a, b))
            if layout == "plain":
                exact = [q.out.numpy().astype(np.float64) * np.repeat(q.scale.numpy(), 32, 1) for q in (left, right)]
                self.assertLess(np.abs(exact[0] - a).max() / np.abs(a).max(), 0.25)
            else:
                exact = [np.multiply(*(f(q) for f in (lambda q: q.out.numpy(), lambda q: np.repeat(q.scale.numpy(), 32, 1))))
                         for q in (self.handle.mx_quantise(x, dtype) for x in (a, b))]
            got = self.handle.scaled_gemm(left.out, left.scale, right.out.T, right.scale, scale_layout=layout, out_dtype="fp32")
            self.close(got, exact[0] @ exact[1].T, 1e-4)

    def test_norms(self):
        x, xx = self.array(6, 80, dtype="fp32")
        weight, wx = self.array(80, dtype="bf16")
        residual, rx = self.array(6, 80, dtype="fp32")
        dout, gx = self.array(6, 80, dtype="fp32")
        h = (xx + rx).astype(np.float32).astype(np.float64)
        rstd = 1 / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)
        got = self.handle.rms_norm(x, weight, eps=1e-6, residual=residual, rstd=True)
        self.close(got.out, h * rstd * wx, 1e-5 * np.abs(h * rstd * wx) + 1e-7)
        self.close(got.sum, h, 0)
        z, g = h * rstd, gx * wx
        gradients = self.handle.rms_norm_backward(got.sum, got.rstd, dout, weight)
        self.close(gradients.dx, rstd * (g - z * (g * z).mean(-1, keepdims=True)), 1e-4)
        self.close(gradients.dweight, (gx * z).sum(0), 1e-4)
        bias, bx = self.array(80, dtype="fp32")
        centred = xx - xx.mean(-1, keepdims=True)
        rstd = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        got = self.handle.layer_norm(x, weight, bias, rstd=True)
        self.close(got.out, centred * rstd * wx + bx, 1e-4)
        z = centred * rstd
        gradients = self.handle.layer_norm_backward(x, got.mean, got.rstd, dout, weight, dbias="bf16")
        self.close(gradients.dx, rstd * (g - g.mean(-1, keepdims=True) - z * (g * z).mean(-1, keepdims=True)), 1e-4)
        self.close(gradients.dbias, gx.sum(0), 1e-4 + np.abs(gx.sum(0)) * HALF_ULP["bf16"])
        quantised = self.handle.rms_norm(x, out_dtype="e4m3", scale_dtype="e8m0")
        scale = np.repeat(quantised.out_scale.numpy(), 32, 1)[:, :80].astype(np.float64)
        exact = xx / np.sqrt((xx * xx).mean(-1, keepdims=True) + 1.1920929e-07)
        exact = np.clip(exact, -448 * scale, 448 * scale)  # saturates where the block's largest number rounds past 448
        error = np.abs(quantised.out.numpy() * scale - exact)
        self.assertTrue((error <= (2.0**-4 + 2.0**-16) * np.abs(exact) + scale * 2.0**-10).all())

    def test_topk(self):
        x = rng.integers(-5, 5, (3, 7, 20)).astype(np.float32)
        x[0, 0, 3] = np.nan
        for largest in (True, False):
            order = np.where(np.isnan(x), np.inf, x)
            right = np.argsort(-order if largest else order, 1, kind="stable")[:, :4]
            got = self.handle.topk(x, 4, axis=1, largest=largest)
            np.testing.assert_array_equal(got.indices.numpy(), right)
            np.testing.assert_array_equal(got.values.numpy(), np.take_along_axis(x, right, 1))
        with self.assertRaises(flydsl_aot.InvalidArgument):
            self.handle.topk(x, 21)

    def test_topk_softmax(self):
        x = rng.standard_normal((9, 40)).astype(np.float32)
        got = self.handle.topk_softmax(x, 4)
        right = np.argsort(-x, 1, kind="stable")[:, :4]
        np.testing.assert_array_equal(got.indices.numpy(), right)
        p = np.exp(x.astype(np.float64))
        self.close(got.values, np.take_along_axis(p / p.sum(1, keepdims=True), right, 1), 1e-6)
        chosen = np.take_along_axis(p, right, 1)
        self.close(self.handle.topk_softmax(x, 4, chosen_only=True).values, chosen / chosen.sum(1, keepdims=True), 1e-6)

    def test_every_operator_is_here(self):
        source = pathlib.Path(__file__).read_text(encoding="utf-8")
        for operator in _layout.PARAMETERS:
            self.assertIn(f"self.handle.{operator}(", source)


if __name__ == "__main__":
    unittest.main()
