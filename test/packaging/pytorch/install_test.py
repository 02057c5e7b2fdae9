"""install(): PyTorch's own functions on the library, and back."""

import unittest
from unittest import mock

import torch
import torch.nn.functional as F
from torch.testing._internal.two_tensor import TwoTensor

import flydsl_aot.torch as aot
from support import UNIT, Case


class Install(Case):
    def installed(self, *operators):
        names = aot.install(operators or None, device="cpu")
        self.addCleanup(aot.uninstall, device="cpu")
        return names

    def launched(self):
        """Operators of the library that run from here on."""
        names, original = [], aot.runtime.launch
        self.enterContext(mock.patch.object(aot.runtime, "launch", lambda name, *rest: names.append(name) or original(name, *rest)))
        return names

    def test_functions_take_the_library_s_kernels(self):
        q, k = self.random(1, 4, 9, 32), self.random(1, 2, 9, 32)
        x, w, b = self.random(4, 32), self.random(32), self.random(8, 32)
        dout = torch.randn(1, 4, 9, 32).bfloat16()
        wanted = [aot.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True), aot.rms_norm(x, [32], w, 1e-5),
                  aot.layer_norm(x, [32], w), aot.topk(x, 3).indices, aot.mm(x, b.T), aot.bmm(q[0], k[0].repeat(2, 1, 1).transpose(1, 2))]
        gradients = torch.autograd.grad(wanted[0], (q, k), dout)
        self.assertEqual(set(self.installed()), set(aot.overrides.OPERATORS))
        got = [F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True), F.rms_norm(x, [32], w, 1e-5),
               F.layer_norm(x, [32], w), torch.topk(x, 3).indices, torch.mm(x, b.T), torch.bmm(q[0], k[0].repeat(2, 1, 1).transpose(1, 2))]
        for index, (left, right) in enumerate(zip(got, wanted)):
            self.assertTrue(left.equal(right), index)
        for left, right in zip(torch.autograd.grad(got[0], (q, k), dout), gradients):
            self.assertTrue(left.equal(right))
        self.assert_none_fell_back()

    def test_gradients_of_products_come_through_too(self):
        self.installed("mm", "addmm")
        calls = []
        original = aot.products.gemm_op
        aot.products.gemm_op = lambda *arguments: calls.append(1) or original(*arguments)
        self.addCleanup(setattr, aot.products, "gemm_op", original)
        c, a, b = self.random(5), self.random(4, 16), self.random(16, 5)
        out = torch.addmm(c, a, b)
        dout = torch.randn_like(out)
        got = torch.autograd.grad(out, (c, a, b), dout)
        self.assertEqual(len(calls), 3)
        self.assert_none_fell_back()
        exact = torch.addmm(c.double(), a.double(), b.double())
        for left, right in zip(got, torch.autograd.grad(exact, (c, a, b), dout.double())):
            self.assert_norm(left, right, 2 * UNIT[torch.bfloat16])

    def test_grouped_and_scaled_products(self):
        self.installed("grouped_mm", "scaled_mm")
        a, b = self.random(6, 16), self.random(2, 16, 8)
        ends = torch.tensor([2, 6], dtype=torch.int32)
        out = F.grouped_mm(a, b, offs=ends)
        self.assert_norm(out, torch.cat([a[:2].double() @ b[0].double(), a[2:].double() @ b[1].double()]), UNIT[out.dtype] * 2)
        x, y = torch.randn(4, 32).to(torch.float8_e4m3fn), torch.randn(8, 32).to(torch.float8_e4m3fn).t()
        scale = [torch.full((rows, 1), 128, dtype=torch.uint8).view(torch.float8_e8m0fnu) for rows in (4, 8)]
        recipe = F.ScalingType.BlockWise1x32
        out = F.scaled_mm(x, y, scale[0], recipe, scale[1], recipe, output_dtype=torch.float32)
        self.assert_norm(out, 4 * x.double() @ y.double(), 2.0**-20)
        self.assert_none_fell_back()

    def test_products_into_given_memory(self):
        a, b, c = self.random(4, 16, grad=False), self.random(16, 5, grad=False), self.random(5, grad=False)
        exact = a.double() @ b.double()
        self.installed("mm", "addmm", "bmm")
        launched = self.launched()
        for out in (torch.empty(4, 5, dtype=a.dtype), torch.empty(5, 4, dtype=a.dtype).T):
            self.assertIs(torch.mm(a, b, out=out), out)
            self.assert_norm(out, exact, 2 * UNIT[a.dtype])
            torch.addmm(c, a, b, alpha=2, beta=3, out=out)
            self.assert_norm(out, 2 * exact + 3 * c.double(), 2 * UNIT[a.dtype])
        batched = torch.empty(2, 4, 5, dtype=a.dtype)
        torch.bmm(a.expand(2, 4, 16), b.expand(2, 16, 5), out=batched)
        self.assert_norm(batched, exact.expand(2, 4, 5), 2 * UNIT[a.dtype])
        self.assertEqual(launched, ["gemm"] * 5)
        self.assert_none_fell_back()
        square = self.random(4, 4, grad=False)
        torch.addmm(square, a, b[:, :4], out=square)
        self.assertIn("out may overlap an operand or itself", self.reasons[-1])
        self.assertEqual(torch.mm(a, b, out=torch.empty(0, dtype=a.dtype)).shape, (4, 5))
        self.assertEqual(launched, ["gemm"] * 5)

    def test_norms_below_autograd(self):
        x, w, b = self.random(3, 5, 32), self.random(32), self.random(32)
        dout = torch.randn(3, 5, 32).bfloat16()
        exact = torch.native_layer_norm(*(y.double() for y in (x,)), [32], w.double(), b.double(), 1e-5)
        right = torch.autograd.grad(exact[0], (x, w, b), dout.double())
        self.installed("layer_norm")
        launched = self.launched()
        out, mean, rstd = torch.native_layer_norm(x, [32], w, b, 1e-5)
        self.assertEqual((mean.shape, rstd.dtype), (exact[1].shape, torch.float32))
        self.assert_norm(out, exact[0], UNIT[x.dtype])
        self.assert_norm(rstd, exact[2], 1e-5)
        for got, gradient in zip(torch.autograd.grad(out, (x, w, b), dout), right):
            self.assert_norm(got, gradient, 2 * UNIT[x.dtype])
        self.assertEqual(launched, ["layer_norm", "layer_norm_backward"])
        launched.clear()
        torch.autograd.grad(F.layer_norm(x, [32], w, b), (x, w, b), dout)
        self.assertEqual(launched, ["layer_norm", "layer_norm_backward"])
        self.assert_none_fell_back()

    def test_scaled_products_of_the_older_operator(self):
        x, y = torch.randn(6, 64).to(torch.float8_e4m3fn), torch.randn(8, 64).to(torch.float8_e4m3fn).t()
        exact = x.double() @ y.double()
        self.installed("scaled_mm")
        launched = self.launched()
        rows, columns = torch.rand(6, 1) + 0.5, torch.rand(1, 8) + 0.5
        blocks = [torch.full((n, 2), 128, dtype=torch.uint8).view(torch.float8_e8m0fnu) for n in (6, 8)]
        for scales, factor in (((torch.tensor(2.0), torch.tensor(0.25)), 0.5), ((rows, columns), rows.double() * columns.double()), (blocks, 4)):
            out = torch._scaled_mm(x, y, *scales, out_dtype=torch.float32)
            self.assert_norm(out, exact * factor, 2.0**-20)
        bias = self.random(8, grad=False)
        out = torch._scaled_mm(x, y, torch.ones(1), torch.ones(1), bias, out_dtype=torch.bfloat16)
        self.assert_norm(out, exact + bias.double(), UNIT[out.dtype] * 2)
        self.assertEqual(launched, ["gemm", "gemm", "scaled_gemm", "gemm"])
        self.assert_none_fell_back()
        with self.assertRaises((RuntimeError, ValueError)):  # PyTorch's own kernel is left to refuse it
            torch._scaled_mm(x, y, torch.ones(3), torch.ones(1), out_dtype=torch.float32)
        self.assertIn("scales are torch.float32 [3]", self.reasons[-1])

    def test_falls_back_to_aten(self):
        self.installed()
        q, x = self.random(1, 1, 4, 32, dtype=torch.float32), self.random(3, 3, dtype=torch.float64)
        out = F.scaled_dot_product_attention(q, q, q)
        self.assertIn("aten::scaled_dot_product_attention falls back to ATen: query is torch.float32", self.reasons[0])
        gradient = torch.autograd.grad(out.sum(), q)[0]
        product = torch.mm(x, x)
        gradcheck = torch.autograd.gradcheck(lambda x: F.rms_norm(torch.mm(x, x), [3]), (x,))
        self.assertTrue(gradcheck)
        aot.uninstall(device="cpu")
        right = F.scaled_dot_product_attention(q, q, q)
        self.assertTrue(out.equal(right) and torch.allclose(gradient, torch.autograd.grad(right.sum(), q)[0], atol=1e-6))
        self.assertTrue(product.equal(torch.mm(x, x)))

    def test_out_variants_and_modules(self):
        self.installed()
        x = torch.randn(4, 20)
        values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
        torch.topk(x, 3, out=(values, indices))
        self.assertTrue(indices.equal(aot.topk(x, 3).indices) and values.equal(x.gather(1, indices)))
        module = torch.nn.MultiheadAttention(32, 2, batch_first=True).bfloat16()
        tokens = self.random(2, 5, 32)
        out = module(tokens, tokens, tokens, need_weights=False)[0]
        aot.uninstall(device="cpu")
        self.assert_norm(out, module(tokens, tokens, tokens, need_weights=False)[0], 4 * UNIT[out.dtype])

    def test_inference_mode_and_autocast(self):
        self.installed("scaled_dot_product_attention", "rms_norm")
        q = self.random(1, 2, 6, 32)
        with torch.inference_mode():
            self.assertTrue(F.scaled_dot_product_attention(q, q, q).equal(aot.scaled_dot_product_attention(q, q, q)))
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(F.scaled_dot_product_attention(q.float(), q.float(), q.float()).dtype, torch.bfloat16)
        self.assert_none_fell_back()

    def test_transforms_of_functions_fall_back(self):
        self.installed()
        q, tangent = self.random(1, 1, 4, 32, dtype=torch.float32, grad=False), torch.randn(1, 1, 4, 32)
        transforms = {
            "grad": lambda function: torch.func.grad(lambda x: function(x).sum())(q), "vmap": lambda function: torch.func.vmap(function)(q),
            "jvp": lambda function: torch.func.jvp(function, (q,), (tangent,))[1]}  # PyTorch has none of its attention on the CPU
        for function, names in ((lambda x: F.scaled_dot_product_attention(x.bfloat16(), x.bfloat16(), x.bfloat16()), ("grad", "vmap")),
                                (lambda x: F.rms_norm(x, [32]), ("grad", "vmap", "jvp")), (lambda x: x @ x.mT, ("grad", "vmap", "jvp"))):
            got = [transforms[name](function) for name in names]
            aot.uninstall(device="cpu")
            for name, left in zip(names, got):
                self.assert_norm(left, transforms[name](function), 0.02, name)
            self.installed()

    def test_tensors_that_are_more_than_their_data_fall_back(self):
        self.installed("rms_norm", "scaled_dot_product_attention")
        x = TwoTensor(torch.randn(3, 32), torch.randn(3, 32))
        out = F.rms_norm(x, [32])
        self.assertTrue(torch.allclose(out.a, F.rms_norm(x.a, [32]), atol=1e-5) and torch.allclose(out.b, F.rms_norm(x.b, [32]), atol=1e-5))
        self.assertIn("tensors of type TwoTensor", self.reasons[0])

    def test_compiles(self):
        q = self.random(1, 2, 6, 32)
        launched = self.launched()
        function = torch.compile(lambda q: F.rms_norm(F.scaled_dot_product_attention(q, q, q, is_causal=True), [32]), backend="aot_eager")
        function(q)  # PyTorch's kernels: nothing of this is kept
        self.assertEqual(launched, [])
        self.installed()
        out = function(q)
        self.assertEqual(launched, ["attention_forward", "rms_norm"])
        right = F.rms_norm(aot.scaled_dot_product_attention(q, q, q, is_causal=True), [32])
        self.assert_norm(out, right, 2 * UNIT[q.dtype])
        self.assert_norm(torch.autograd.grad(out.sum(), q)[0], torch.autograd.grad(right.sum(), q)[0], 4 * UNIT[q.dtype])
        self.assert_none_fell_back()

    def test_refuses_what_it_cannot_do(self):
        self.assertEqual(aot.install(device="cuda"), [])  # no ROCm here
        self.assertIn("nothing is overridden: this PyTorch is not built for ROCm", self.reasons[-1])
        with mock.patch.dict(aot.overrides.OPERATORS, {"later": [("of_a_later_pytorch", aot.overrides._mm, False)]}):
            self.assertEqual(self.installed("later", "mm"), ["mm"])
        self.assertIn("later is not overridden", self.reasons[-1])
        aot.uninstall(device="cpu")
        aot.emulate(False)
        self.assertEqual(aot.install(device="cpu"), [])
        with self.assertRaisesRegex(ValueError, "operators has 'conv'; it may have scaled_dot_product_attention"):
            aot.install(["conv"])
        with self.assertRaisesRegex(ValueError, "device is 'xpu'"):
            aot.install(device="xpu")


if __name__ == "__main__":
    unittest.main()
