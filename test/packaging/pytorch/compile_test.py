"""Custom operators keep torch.library's contract (schema, fake tensors, autograd), and torch.compile takes the functions whole."""

import pathlib
import shutil
import sysconfig
import tempfile
import unittest
from unittest import mock

import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code
from torch.library import opcheck

import flydsl_aot.torch as aot
from support import UNIT, Case


def compiled(function):
    return torch.compile(function, backend="aot_eager", fullgraph=True)


class Compile(Case):
    def test_operators_keep_their_contract(self):
        ops = torch.ops.flydsl_aot
        q, k, v = self.random(1, 2, 5, 16), self.random(1, 1, 6, 16), self.random(1, 1, 6, 8)
        bias, seed = self.random(1, 1, 5, 6), torch.tensor([3, 4])
        shared = (None, None, 0, 0, 0.25, 1, -1, 0)
        cases = [
            (ops.attention_forward, (q, k, v, bias, None, seed, *shared, 0.25)),
            (ops.attention_forward, (q.transpose(1, 2).contiguous().transpose(1, 2), k, k, None, torch.rand(1, 1, 5, 6) < 0.5, None, *shared, 0.0)),
            (ops.rms_norm, (self.random(3, 8, dtype=torch.float32), self.random(8), 1e-5)),
            (ops.layer_norm, (self.random(3, 8, dtype=torch.float32), self.random(8), None, 1e-5)),
            (ops.topk, (self.random(3, 8), 2, -1, True, True)),
            (ops.gemm, (self.random(3, 8), self.random(8, 4), self.random(3, 4), None, 2.0, 0.5)),
            (ops.grouped_gemm, (self.random(6, 8), self.random(2, 8, 4), torch.tensor([2, 6], dtype=torch.int32), None, torch.bfloat16)),
            (ops.scaled_gemm, (torch.randn(3, 32).to(torch.float8_e4m3fn), torch.randn(4, 32).to(torch.float8_e4m3fn).t(),
                               torch.full((3, 1), 127, dtype=torch.uint8).view(torch.float8_e8m0fnu),
                               torch.full((4, 1), 127, dtype=torch.uint8).view(torch.float8_e8m0fnu), None, 0, torch.float32)),
            (ops.descaled_gemm, (torch.randn(3, 32).to(torch.float8_e4m3fn), torch.randn(32, 4).to(torch.float8_e4m3fn), torch.ones(1),
                                 torch.ones(1), None, torch.float32)),
        ]
        for operator, arguments in cases:
            with self.subTest(str(operator)):
                tests = ["test_faketensor"]
                if all(not isinstance(x, torch.Tensor) or x.element_size() > 1 or x.dtype == torch.bool for x in arguments):
                    tests.append("test_schema")  # which compares operands, as CPU PyTorch cannot those of 8 bits
                if any(isinstance(x, torch.Tensor) and x.requires_grad for x in arguments):
                    tests += ["test_autograd_registration", "test_aot_dispatch_static"]
                opcheck(operator.default, arguments, test_utils=tests)

    def test_functions_compile_whole(self):
        q, k = self.random(1, 4, 9, 32), self.random(1, 2, 11, 32)
        x, weight, expert = self.random(6, 32), self.random(32), self.random(2, 32, 16)
        ends = torch.tensor([2, 6], dtype=torch.int32)

        def block(q, k, x, weight, expert):
            attended = aot.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
            normed = aot.rms_norm(x, [32], weight, 1e-5)
            return attended.float().sum() + (aot.grouped_mm(normed, expert, offs=ends) @ aot.mm(normed, expert[0]).T).float().sum() + \
                aot.topk(normed, 2).values.float().sum()

        inputs = (q, k, x, weight, expert)
        eager, whole = block(*inputs), compiled(block)(*inputs)
        self.assertTrue(torch.allclose(eager, whole, rtol=1e-2))
        for left, right in zip(torch.autograd.grad(eager, inputs), torch.autograd.grad(whole, inputs)):
            self.assert_norm(left, right, 0.02)
        self.assert_none_fell_back()

    def test_dropout_compiles_with_the_generator(self):
        q = self.random(1, 1, 8, 32)
        function = compiled(lambda q: aot.scaled_dot_product_attention(q, q, q, dropout_p=0.5))
        first, second = function(q), function(q)
        self.assertFalse(first.equal(second))
        torch.manual_seed(9)
        first = function(q)
        torch.manual_seed(9)
        self.assertTrue(first.equal(function(q)))

    def test_what_falls_back_compiles_too(self):
        q = self.random(1, 1, 8, 32, dtype=torch.float32)
        self.assertTrue(torch.allclose(compiled(lambda q: aot.scaled_dot_product_attention(q, q, q))(q), F.scaled_dot_product_attention(q, q, q)))

    def test_transforms_of_functions_fall_back(self):
        q = self.random(1, 1, 4, 32, grad=False)

        def total(q):
            return aot.scaled_dot_product_attention(q, q, q).float().sum()

        def exact(q):
            return F.scaled_dot_product_attention(q, q, q).float().sum()

        self.assert_norm(torch.func.grad(total)(q), torch.func.grad(exact)(q), 0.02)
        self.assertIn("inside a transform of torch.func", self.reasons[0])
        self.reasons.clear()
        norm = torch.func.vmap(lambda x: aot.rms_norm(x, [32]))(q)
        self.assert_norm(norm, F.rms_norm(q, [32]), 0.01)
        self.assertEqual(len(self.reasons), 1)
        x, tangent = torch.randn(3, 4), torch.randn(3, 4)
        for function in (lambda x: aot.rms_norm(x, [4]), lambda x: aot.mm(x, x.T), lambda x: aot.topk(x, 2).values):
            numbers = torch.func.jvp(function, (x,), (tangent,))[1]
            difference = (function(x.double() + 1e-6 * tangent) - function(x.double() - 1e-6 * tangent)) / 2e-6
            self.assert_norm(numbers, difference, 1e-4)
        self.reasons.clear()
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, tangent)
            numbers = torch.autograd.forward_ad.unpack_dual(aot.mm(dual, x.T)).tangent
        self.assert_norm(numbers, tangent @ x.T, 1e-5)
        self.assertIn("inside forward-mode differentiation", self.reasons[0])

    def test_sizes_may_change(self):
        function = torch.compile(lambda q: aot.scaled_dot_product_attention(q, q, q), backend="aot_eager", fullgraph=True, dynamic=True)
        for length in (5, 9):
            q = self.random(1, 2, length, 32)
            self.assertTrue(function(q).equal(aot.scaled_dot_product_attention(q, q, q)))


@unittest.skipUnless(shutil.which("c++") and pathlib.Path(sysconfig.get_path("include"), "Python.h").exists(),
                     "torch.compile's default backend makes C++: it needs c++ and Python.h")
class Inductor(Case):
    """torch.compile as users call it: PyTorch's operators become C++, the library's stay calls."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.dict("os.environ", TORCHINDUCTOR_CACHE_DIR=self.enterContext(tempfile.TemporaryDirectory())))
        self.enterContext(torch._inductor.config.patch(cpp_cache_precompile_headers=False, compile_threads=1))
        torch.compiler.reset()

    def code_of(self, function, inputs, dout):
        """Its result and gradients through the default backend, and the source that was made of it."""
        whole = torch.compile(function, fullgraph=True)
        (out, gradients), sources = run_and_get_code(lambda: (out := whole(*inputs), torch.autograd.grad(out, inputs, dout)))
        return out, gradients, "\n".join(sources)

    def test_functions(self):
        def block(q, k, weight):
            attended = aot.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
            return aot.rms_norm(attended + F.silu(attended), [32], weight, 1e-5)

        inputs = (self.random(1, 4, 9, 32), self.random(1, 2, 9, 32), self.random(32))
        eager = block(*inputs)
        dout = torch.randn_like(eager)
        out, gradients, source = self.code_of(block, inputs, dout)
        for name in ("attention_forward", "attention_backward", "rms_norm", "rms_norm_backward"):
            self.assertIn(f"torch.ops.flydsl_aot.{name}.default", source)
        self.assertIn("extern \"C\"", source)  # SiLU
        self.assert_norm(out, eager, UNIT[out.dtype])
        for left, right in zip(gradients, torch.autograd.grad(eager, inputs, dout)):
            self.assert_norm(left, right, 3 * UNIT[out.dtype])
        self.assert_none_fell_back()

    def test_installed(self):
        self.assertTrue(aot.install(device="cpu"))
        self.addCleanup(aot.uninstall, device="cpu")
        launched = []
        original = aot.runtime.launch
        self.enterContext(mock.patch.object(aot.runtime, "launch", lambda name, *rest: launched.append(name) or original(name, *rest)))

        def block(x, w, b):
            q = F.linear(F.layer_norm(x, [32], w), b).unflatten(-1, (2, 32)).transpose(1, 2)
            return F.scaled_dot_product_attention(q, q, q, is_causal=True).tanh()

        inputs = (self.random(2, 7, 32), self.random(32), self.random(64, 32))
        eager = block(*inputs)
        dout = torch.randn_like(eager)
        right = torch.autograd.grad(eager, inputs, dout)
        of_eager, launched[:] = sorted(launched), []
        out, gradients, _ = self.code_of(block, inputs, dout)
        self.assertEqual(sorted(launched), of_eager)
        self.assert_norm(out, eager, 2 * UNIT[out.dtype])
        for left, exact in zip(gradients, right):
            self.assert_norm(left, exact, 4 * UNIT[out.dtype])
        self.assert_none_fell_back()


if __name__ == "__main__":
    unittest.main()
