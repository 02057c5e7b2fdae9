"""Products, forward and backward, against PyTorch's own in float64."""

import unittest

import torch
import torch.nn.functional as F
from torch.testing._internal.common_quantized import to_blocked

import flydsl_aot
import flydsl_aot.torch as aot
from support import UNIT, Case

MX = F.ScalingType.BlockWise1x32


class Products(Case):
    def compare(self, function, reference, inputs, what, unit=None):
        """Errors of the norm: one roundoff of the result and FP32 sums."""
        out = function(*inputs)
        exact = reference(*(x.double() for x in inputs))
        unit = unit or UNIT[out.dtype]
        self.assert_norm(out, exact, unit + 2.0**-21, what)
        wanted = [x for x in inputs if x.requires_grad]
        dout = torch.randn_like(out)
        for got, right in zip(torch.autograd.grad(out, wanted, dout), torch.autograd.grad(exact, wanted, dout.double())):
            self.assert_norm(got, right, 2 * unit + 2.0**-21, what)
        self.assert_none_fell_back()

    def test_products(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            a, b = self.random(17, 24, dtype=dtype), self.random(24, 9, dtype=dtype)
            self.compare(aot.mm, torch.mm, (a, b), f"mm {dtype}")
            self.compare(lambda a, b: aot.mm(b.T, a.T), lambda a, b: torch.mm(b.T, a.T), (a, b), f"mm transposed {dtype}")
            for c in (self.random(17, 9, dtype=dtype), self.random(9, dtype=dtype), self.random(17, 1, dtype=dtype), self.random(1, dtype=dtype)):
                for numbers in (dict(), dict(beta=0.5, alpha=-2)):
                    self.compare(lambda c, a, b: aot.addmm(c, a, b, **numbers), lambda c, a, b: torch.addmm(c, a, b, **numbers), (c, a, b),
                                 f"addmm {dtype} {list(c.shape)} {numbers}")
            self.compare(aot.bmm, torch.bmm, (self.random(3, 5, 24, dtype=dtype), self.random(3, 24, 7, dtype=dtype)), f"bmm {dtype}")
            weight, bias = self.random(9, 24, dtype=dtype), self.random(9, dtype=dtype)
            self.compare(aot.linear, F.linear, (self.random(2, 5, 24, dtype=dtype), weight, bias), f"linear {dtype}")
            self.compare(aot.linear, F.linear, (self.random(24, dtype=dtype), weight), f"linear of a vector {dtype}")

    def test_products_have_the_gradients_of_their_differences(self):
        a, b, c = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True), torch.randn(2, requires_grad=True)
        for function, inputs in ((aot.mm, (a, b)), (lambda c, a, b: aot.addmm(c, a, b, beta=2, alpha=3), (c, a, b))):
            self.assertTrue(torch.autograd.gradcheck(function, inputs, eps=1e-2, atol=1e-3, rtol=1e-3))
            self.assertTrue(torch.autograd.gradgradcheck(function, inputs, eps=1e-2, atol=1e-3, rtol=1e-3))

    def test_products_fall_back(self):
        a = torch.randn(3, 3)
        for call, reason in ((lambda: aot.mm(a.double(), a.double()), "float64"), (lambda: aot.mm(a.int(), a.int()), "int32")):
            self.reasons.clear()
            call()
            self.assertIn(reason, self.reasons[0])
        for call in (lambda: aot.mm(a, a[:2]), lambda: aot.bmm(a, a), lambda: aot.addmm(torch.randn(4), a, a)):
            with self.assertRaises(RuntimeError):
                call()

    def test_grouped_mm(self):
        for dtype in (torch.bfloat16, torch.float16):
            for ends in (torch.tensor([6, 6, 20], dtype=torch.int32), torch.tensor([4, 13, 17])):
                bounds = list(zip([0, *ends.tolist()[:-1]], ends.tolist()))

                def rows(a, b):
                    parts = [a[start:end] @ b[group] for group, (start, end) in enumerate(bounds)]
                    return torch.cat([*parts, a.new_zeros(20 - bounds[-1][1], b.shape[-1])])

                def inner(a, b):
                    return torch.stack([a[:, start:end] @ b[start:end] for start, end in bounds])

                def columns(a, b):
                    parts = [a[group] @ b[:, start:end] for group, (start, end) in enumerate(bounds)]
                    return torch.cat([*parts, a.new_zeros(a.shape[1], 20 - bounds[-1][1])], 1)

                def grouped(a, b):
                    return aot.grouped_mm(a, b, offs=ends)

                what = f"{dtype} {ends}"
                self.compare(grouped, rows, (self.random(20, 16, dtype=dtype), self.random(3, 16, 8, dtype=dtype)), f"rows {what}")
                self.compare(lambda a, b: grouped(a, b.transpose(1, 2)), lambda a, b: rows(a, b.transpose(1, 2)),
                             (self.random(20, 16, dtype=dtype), self.random(3, 8, 16, dtype=dtype)), f"rows, stored (G, N, K) {what}")
                self.compare(lambda a, b: grouped(a.T, b), lambda a, b: inner(a.T, b),
                             (self.random(20, 16, dtype=dtype), self.random(20, 8, dtype=dtype)), f"K {what}")
                self.compare(grouped, columns, (self.random(3, 8, 16, dtype=dtype), self.random(16, 20, dtype=dtype)), f"columns {what}")
            self.compare(aot.grouped_mm, torch.bmm, (self.random(2, 5, 16, dtype=dtype), self.random(2, 16, 8, dtype=dtype)), f"none {dtype}")
        a, b, bias = self.random(20, 16), self.random(2, 16, 8), self.random(2, 8)
        ends = torch.tensor([7, 20], dtype=torch.int32)
        self.compare(lambda a, b, c: aot.grouped_mm(a, b, offs=ends, bias=c, out_dtype=torch.float32),
                     lambda a, b, c: torch.cat([a[:7] @ b[0] + c[0], a[7:] @ b[1] + c[1]]), (a, b, bias), "bias", UNIT[torch.bfloat16])
        self.assertTrue(aot.grouped_mm(a, b, offs=ends).dtype == torch.bfloat16)

    def test_scaled_mm_of_tensors_and_rows(self):
        a, b = torch.randn(13, 32).to(torch.float8_e4m3fn), torch.randn(9, 32).to(torch.float8_e5m2).T
        exact = a.double() @ b.double()
        for recipe, left, right in ((F.ScalingType.TensorWise, torch.tensor(0.5), torch.tensor(3.0)),
                                    (F.ScalingType.RowWise, torch.rand(13, 1), torch.rand(1, 9))):
            for out_dtype in (torch.bfloat16, torch.float32):
                out = aot.scaled_mm(a, b, left, recipe, right, recipe, output_dtype=out_dtype)
                self.assertEqual(out.dtype, out_dtype)
                self.assert_norm(out, exact * left.double() * right.double(), UNIT[out_dtype] + 2.0**-20)
        bias = torch.randn(9)
        out = aot.scaled_mm(a, b, torch.tensor(0.5), F.ScalingType.TensorWise, torch.tensor(3.0), F.ScalingType.TensorWise, bias=bias)
        self.assert_norm(out, exact * 1.5 + bias, UNIT[torch.bfloat16] + 2.0**-20)
        self.assert_none_fell_back()

    def quantised(self, rows, columns, dtype):
        """MX operand, its scales (rows, columns / 32) and exact values, made by the library."""
        library = flydsl_aot.open(device="emulator")
        made = library.mx_quantise(torch.randn(rows, columns).numpy(), dtype)
        torch_dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m1x2": torch.float4_e2m1fn_x2}[dtype]
        scale = torch.from_numpy(made.scale.bits()).view(torch.float8_e8m0fnu)
        values = torch.from_numpy(made.out.numpy()).double() * scale.double().repeat_interleave(32, 1)
        return torch.from_numpy(made.out.bits()).view(torch_dtype), scale, values

    def test_scaled_mm_of_blocks(self):
        for dtype in ("e4m3", "e5m2", "e2m1x2"):
            (a, a_scale, a_values), (b, b_scale, b_values) = self.quantised(11, 96, dtype), self.quantised(40, 96, dtype)
            exact = a_values @ b_values.T
            out = aot.scaled_mm(a, b.t(), a_scale, MX, b_scale, MX)
            self.assert_norm(out, exact, UNIT[torch.bfloat16] + 2.0**-20, dtype)
            swizzle = F.SwizzleType.SWIZZLE_32_8
            out = aot.scaled_mm(a, b.t(), to_blocked(a_scale, True), MX, to_blocked(b_scale, True), MX, swizzle, swizzle,
                                output_dtype=torch.float32)
            self.assert_norm(out, exact, UNIT[torch.float32] + 2.0**-20, f"{dtype} shuffled")
        self.assert_none_fell_back()

    def test_scaled_grouped_mm(self):
        (a, a_scale, a_values), (b, b_scale, b_values) = self.quantised(20, 64, "e4m3"), self.quantised(16, 64, "e5m2")
        experts, scales, values = b.reshape(2, 8, 64).transpose(1, 2), b_scale.reshape(2, 8, 2), b_values.reshape(2, 8, 64)
        ends = torch.tensor([9, 17], dtype=torch.int32)
        bias = torch.randn(8)
        out = aot.scaled_grouped_mm(a, experts, a_scale, MX, scales.reshape(2, 16), MX, offs=ends, bias=bias, output_dtype=torch.float32)
        exact = torch.cat([a_values[:9] @ values[0].T + bias, a_values[9:17] @ values[1].T + bias, torch.zeros(3, 8)])
        self.assert_norm(out, exact, 2.0**-20)
        out = aot.scaled_grouped_mm(a.reshape(2, 10, 64), experts, a_scale.reshape(2, 10, 2), MX, scales, MX)
        self.assert_norm(out, a_values.reshape(2, 10, 64) @ values.mT, UNIT[torch.bfloat16] + 2.0**-20)
        self.assert_none_fell_back()
        with self.assertRaises((RuntimeError, ValueError, NotImplementedError)):
            aot.scaled_grouped_mm(a, experts, a_scale[:3], MX, scales, MX, offs=ends)
        self.assertIn("a scale is [3, 2]; [20, 2] is needed", self.reasons[0])

    def test_scaled_mm_falls_back(self):
        (a, scale, _) = self.quantised(4, 64, "e4m3")
        for arguments, reason in (((a, a.t(), scale, MX, scale[:3], MX), "a scale is"),
                                  ((a, a.t(), scale.float(), MX, scale, MX), "e8m0 is needed"),
                                  ((a, a.t(), torch.ones(4, 1), F.ScalingType.RowWise, torch.ones(1), F.ScalingType.TensorWise), "recipes 1 and 0")):
            self.reasons.clear()
            try:
                aot.scaled_mm(*arguments)
            except (RuntimeError, NotImplementedError, ValueError):
                pass  # PyTorch's own verdict
            self.assertEqual(len(self.reasons), 1)
            self.assertIn(reason, self.reasons[0])


if __name__ == "__main__":
    unittest.main()
