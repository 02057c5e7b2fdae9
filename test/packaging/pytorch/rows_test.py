"""rms_norm, layer_norm and topk, forward and backward, against PyTorch's own in float64."""

import unittest

import torch
import torch.nn.functional as F

import flydsl_aot
import flydsl_aot.torch as aot
from flydsl_aot.torch import norms, selection
from support import UNIT, Case


class Rows(Case):
    def compare(self, function, reference, inputs, what):
        out = function(*inputs)
        exact = reference(*(x.double() for x in inputs))
        unit = UNIT[out.dtype]
        self.assert_within(out, exact, 2 * unit * exact.abs() + 2.0**-17, what)
        dout = torch.randn_like(out)
        for got, right, of in zip(torch.autograd.grad(out, inputs, dout), torch.autograd.grad(exact, inputs, dout.double()), inputs):
            self.assertEqual((got.dtype, got.shape), (of.dtype, of.shape), what)
            self.assert_norm(got, right, 2 * max(unit, UNIT[of.dtype]) + 2.0**-17, what)
        self.assert_none_fell_back()

    def test_norms(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for weight_dtype in {dtype, torch.float32, torch.bfloat16}:
                for sizes, shape in (((5, 64), [64]), ((2, 3, 33), [33]), ((2, 3, 4, 10), [4, 10]), ((7,), [7])):
                    what = f"{dtype} {weight_dtype} {sizes}"
                    x, weight, bias = self.random(*sizes, dtype=dtype), self.random(*shape, dtype=weight_dtype), self.random(*shape, dtype=weight_dtype)
                    self.compare(lambda x, w: aot.rms_norm(x, shape, w, 1e-5), lambda x, w: F.rms_norm(x, shape, w, 1e-5), (x, weight), what)
                    self.compare(lambda x, w, b: aot.layer_norm(x, shape, w, b), lambda x, w, b: F.layer_norm(x, shape, w, b),
                                 (x, weight, bias), what)

    def test_without_weights_and_eps(self):
        x = self.random(4, 48, dtype=torch.float32)
        self.compare(lambda x: aot.rms_norm(x, [48]), lambda x: F.rms_norm(x, [48], eps=norms.DEFAULT_EPS), (x,), "rms_norm")
        self.compare(lambda x: aot.layer_norm(x, [48]), lambda x: F.layer_norm(x, [48]), (x,), "layer_norm")
        tiny = x.detach() * 1e-4
        for dtype in (torch.float32, torch.float16, torch.bfloat16):  # PyTorch's own default, whatever it is
            out, right = aot.rms_norm(tiny.to(dtype), [48]), F.rms_norm(tiny.to(dtype), [48])
            self.assert_within(out, right, 2 * UNIT[dtype] * right.abs(), f"{dtype}")

    def test_memory_orders(self):
        x = self.random(6, 5, 40, dtype=torch.float32)
        weight = self.random(40, dtype=torch.float32)
        for view in (lambda x: x[::2], lambda x: x[:, :, ::2], lambda x: x.transpose(0, 1), lambda x: x[:1].expand(3, 5, 40)):
            columns = view(x).shape[-1]
            self.compare(lambda x, w: aot.rms_norm(view(x), [columns], w[:columns]), lambda x, w: F.rms_norm(view(x), [columns], w[:columns],
                         norms.DEFAULT_EPS), (x, weight), f"{view(x).stride()}")

    def test_norms_have_the_gradients_of_their_differences(self):
        x, weight = torch.randn(2, 6, requires_grad=True), torch.randn(6, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda x, w: aot.rms_norm(x, [6], w), (x, weight), eps=1e-2, atol=2e-3, rtol=1e-2,
                                                 nondet_tol=0.0))

    def test_gradients_of_gradients(self):
        x, w, b = (self.random(*sizes, dtype=torch.float32) for sizes in ((3, 32), (32,), (32,)))
        for mine, exact, inputs in ((lambda x, w: aot.rms_norm(x, [32], w, 1e-5), lambda x, w: F.rms_norm(x, [32], w, 1e-5), (x, w)),
                                    (lambda x, w, b: aot.layer_norm(x, [32], w, b), lambda x, w, b: F.layer_norm(x, [32], w, b), (x, w, b)),
                                    (lambda x, w: aot.mm(x, w[:, None]), lambda x, w: torch.mm(x, w[:, None]), (x, w))):
            def twice(function, inputs):
                first = torch.autograd.grad(function(*inputs).pow(2).sum(), inputs[:2], create_graph=True)
                return torch.autograd.grad(sum(gradient.pow(2).sum() for gradient in first), inputs)

            for got, right in zip(twice(mine, inputs), twice(exact, [y.double() for y in inputs])):
                self.assert_norm(got, right, 1e-5)
        self.assert_none_fell_back()

    def test_norms_fall_back(self):
        x = torch.randn(2, 6)
        for call, reason in ((lambda: aot.rms_norm(x.double(), [6]), "float64"), (lambda: aot.layer_norm(x, [6], x[0].double().float().half()), None),
                             (lambda: aot.rms_norm(torch.empty(0, 6), [6]), "no element")):
            self.reasons.clear()
            call()
            self.assertEqual(len(self.reasons), 0 if reason is None else 1)
            if reason:
                self.assertIn(reason, self.reasons[0])
        with self.assertRaises(RuntimeError):
            aot.rms_norm(x, [7])

    def test_topk(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
            x = torch.randperm(3 * 40 * 2).reshape(3, 40, 2).to(torch.int32) if dtype == torch.int32 else torch.randn(3, 40, 2).to(dtype)
            for k, dim in ((1, 0), (5, 1), (2, -1), (40, 1), (0, 1)):
                for largest in (True, False):
                    got = aot.topk(x, k, dim, largest)
                    right = torch.topk(x, k, dim, largest)
                    self.assertTrue(got.values.equal(right.values), f"{dtype} {k} {dim} {largest}")
                    self.assertTrue(x.gather(dim, got.indices).equal(got.values))
                    self.assertEqual(got.indices.dtype, torch.int64)
        x = torch.randn(4, 30, requires_grad=True)
        values = aot.topk(x.T, 3, 0).values
        dvalues = torch.randn_like(values)
        self.assertTrue(torch.autograd.grad(values, x, dvalues)[0].equal(torch.autograd.grad(torch.topk(x.T, 3, 0).values, x, dvalues)[0]))
        self.assert_none_fell_back()
        aot.topk(x.double(), 2)
        self.assertIn("float64", self.reasons[0])
        with self.assertRaises(RuntimeError):
            aot.topk(x, 31)

    def test_topk_of_ties_and_nan(self):
        x = torch.tensor([[1.0, 3, float("nan"), 3, -1, 3]])
        got = aot.topk(x, 4)
        self.assertEqual(got.indices.tolist(), [[2, 1, 3, 5]])
        self.assertEqual(aot.topk(x, 2, largest=False).indices.tolist(), [[4, 0]])

    def test_topk_refusals_are_the_library_s(self):
        library = flydsl_aot.open(device="none", arch="gfx950")
        base = torch.empty(2, 4, 2, 6, 2, 4, 2)
        for x in (base, base[:, ::2], base[:, ::2, :, ::2], base[:, ::2, :, ::2, :, ::2], base[:, :, :, ::3, :, ::2, ::2],
                  torch.empty(3, 4).double(), torch.empty(3, 4).int()):
            for dim in range(x.dim()):
                name = aot.runtime.DTYPES[x.dtype]
                sizes = [1 if axis == dim else size for axis, size in enumerate(x.shape)]
                answer = library.query_fields("topk", {"x": flydsl_aot.shape(x.shape, name, x.stride()), "axis": dim,
                                                       "values": flydsl_aot.shape(sizes, name), "indices": flydsl_aot.shape(sizes, "int64")})
                refused = selection.refusal(x, 1, dim)
                if answer.status == 0 or refused == "":
                    self.assertEqual(answer.status == 0, refused == "", f"{x.shape} {x.stride()} {dim}: {answer.reason} / {refused}")


if __name__ == "__main__":
    unittest.main()
