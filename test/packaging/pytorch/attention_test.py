"""scaled_dot_product_attention and attention_varlen, forward and backward, against PyTorch's own in float64 over its options."""

import unittest
from unittest import mock

import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right

import flydsl_aot
import flydsl_aot.torch as aot
from flydsl_aot.torch import attention
from support import UNIT, Case


class Attention(Case):
    def compare(self, q, k, v, mask=None, what="", **options):
        """Output element by element within the header's bound, gradients within 3 roundoffs of their norm."""
        unit = UNIT[q.dtype]
        inputs = [x for x in (q, k, v, mask) if x is not None and x.is_floating_point() and x.requires_grad]
        out = aot.scaled_dot_product_attention(q, k, v, mask, **options)
        self.assertEqual(out.dtype, q.dtype, what)
        wide = [x.double() for x in (q, k, v)]
        wide_mask = mask.double() if mask is not None and mask.is_floating_point() else mask
        exact = F.scaled_dot_product_attention(*wide, wide_mask, **options)
        magnitude = F.scaled_dot_product_attention(wide[0], wide[1], wide[2].abs(), wide_mask, **options)
        self.assert_within(out, exact, 1.25 * unit * (exact.abs() + magnitude) + 2.0**-24, what)
        dout = torch.randn_like(out)
        for got, right in zip(torch.autograd.grad(out, inputs, dout), torch.autograd.grad(exact, inputs, dout.double())):
            self.assertEqual(got.dtype, right.dtype, what)
            self.assert_norm(got, right, 3 * unit, what)
        self.assert_none_fell_back()

    def test_masks(self):
        for dtype in (torch.bfloat16, torch.float16):
            q, k, v = (self.random(2, 2, length, 32, dtype=dtype) for length in (19, 27, 27))
            for mask in (None, torch.rand(2, 2, 19, 27) < 0.7, torch.rand(19, 27) < 0.7, torch.rand(2, 1, 1, 27) < 0.7,
                         self.random(2, 2, 19, 27, dtype=dtype), self.random(1, 2, 1, 27, dtype=dtype),
                         self.random(19, 27, dtype=torch.float32)):
                what = f"{dtype} {None if mask is None else (mask.dtype, list(mask.shape))}"
                self.compare(q, k, v, mask, what)
            self.compare(q, k, v, what="causal", is_causal=True)
            self.compare(q, k, v, what="scale", scale=0.03)

    def test_head_dims_and_grouped_queries(self):
        for head_dim, value_dim, heads in ((64, 64, 1), (40, 24, 2), (7, 5, 4), (192, 128, 2)):
            q = self.random(1, 4, 17, head_dim)
            k, v = self.random(1, heads, 21, head_dim), self.random(1, heads, 21, value_dim)
            self.compare(q, k, v, what=f"{head_dim} {value_dim} {heads}", is_causal=True, enable_gqa=True)

    def test_axes(self):
        for sizes in ((9, 32), (2, 9, 32), (2, 3, 2, 9, 32)):
            q, k, v = (self.random(*sizes) for _ in range(3))
            self.compare(q, k, v, what=f"{sizes}")
        q, k, v = self.random(2, 3, 2, 9, 32), self.random(1, 3, 2, 11, 32), self.random(2, 1, 2, 11, 32)
        self.compare(q, k, v, torch.rand(2, 3, 1, 9, 11) < 0.8, "broadcast batches")
        self.compare(q, k, v, self.random(3, 1, 9, 11), "a bias that broadcasts over a batch axis")
        self.compare(self.random(2, 2, 9, 32), self.random(2, 1, 9, 32), self.random(1, 2, 9, 32), what="broadcast heads")

    def test_memory_orders(self):
        q, k, v = (self.random(2, 13, 2, 32) for _ in range(3))
        self.compare(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), what="BSHD")
        out = aot.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        self.assertTrue(out.transpose(1, 2).is_contiguous())
        self.compare(self.random(2, 2, 32, 13).transpose(2, 3), self.random(2, 2, 26, 32)[:, :, ::2], self.random(2, 2, 13, 32), what="strided")
        packed = self.random(2, 13, 3, 2, 32)
        self.compare(*(packed[:, :, part].transpose(1, 2) for part in range(3)), what="packed QKV")

    def test_rows_that_see_no_key(self):
        q, k, v = (self.random(1, 1, 6, 32) for _ in range(3))
        mask = torch.ones(6, 6, dtype=torch.bool)
        mask[2] = False
        out = aot.scaled_dot_product_attention(q, k, v, mask)
        self.assertTrue((out[0, 0, 2] == 0).all())
        dq, dk = torch.autograd.grad(out.sum(), (q, k))
        self.assertTrue((dq[0, 0, 2] == 0).all() and dk.isfinite().all())
        self.compare(q, k, v, mask, "a row without keys")
        self.assertEqual(aot.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0]).abs().sum(), 0)

    def test_few_queries_over_many_keys_are_decoded(self):
        calls = []
        with mock.patch.object(aot.runtime, "launch", lambda operator, *rest, original=aot.runtime.launch: calls.append(operator) or original(operator, *rest)):
            for queries, keys, head_dim, operator in ((1, 520, 64, "decode"), (16, 515, 32, "decode"), (17, 520, 32, "forward"),
                                                      (1, 40, 32, "forward"), (2, 520, 36, "forward")):
                calls.clear()
                q = self.random(2, 4, queries, head_dim)
                k, v = self.random(2, 2, keys, head_dim), self.random(2, 2, keys, head_dim)
                self.compare(q, k, v, what=f"{queries} {keys} {head_dim}", enable_gqa=True)
                self.assertEqual(calls, [f"attention_{operator}", "attention_backward"])
        self.compare(self.random(1, 2, 4, 64), *(self.random(1, 2, 600, 64) for _ in range(2)), what="causal", is_causal=True)

    def test_causal_bias_objects(self):
        q, k, v = (self.random(1, 1, length, 32) for length in (5, 9, 9))
        mask = torch.ones(5, 9, dtype=torch.bool).tril(4)
        out = aot.scaled_dot_product_attention(q, k, v, causal_lower_right(5, 9))
        exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask)
        self.assert_within(out, exact, 4 * UNIT[q.dtype])
        self.assert_none_fell_back()

    def test_dropout(self):
        q, k, v = (self.random(1, 2, 24, 32) for _ in range(3))
        torch.manual_seed(5)
        first = aot.scaled_dot_product_attention(q, k, v, dropout_p=0.4)
        torch.manual_seed(5)
        self.assertTrue(first.equal(aot.scaled_dot_product_attention(q, k, v, dropout_p=0.4)))
        self.assertFalse(first.equal(aot.scaled_dot_product_attention(q, k, v, dropout_p=0.4)))
        # The weights that were kept, from the library itself, in PyTorch's formula.
        seed = torch.tensor([77, 1000])
        out, _ = attention.attention_forward(q, k, v, None, None, seed, None, None, 0, 0, 32**-0.5, 0, -1, -1, 0.4)
        library = flydsl_aot.open(device="emulator")
        operands = [library.upload(x.detach().float().numpy(), "bf16") for x in (q, k, v)]
        kept = torch.from_numpy(library.attention_forward(*operands, dropout_p=0.4, dropout_seed=77, dropout_offset=1000, kept=True).kept.numpy())
        self.assertLess(abs(kept.double().mean().item() - 0.6), 0.06)
        p = (q.double() @ k.double().transpose(-1, -2) * 32**-0.5).softmax(-1) * kept / 0.6
        exact = p @ v.double()
        self.assert_within(out, exact, 1.25 * UNIT[q.dtype] * (exact.abs() + p @ v.double().abs()) + 2.0**-24)
        dout = torch.randn_like(out)
        for got, right in zip(torch.autograd.grad(out, (q, k, v), dout), torch.autograd.grad(exact, (q, k, v), dout.double())):
            self.assert_norm(got, right, 3 * UNIT[q.dtype])
        self.assert_none_fell_back()

    def test_packed_sequences(self):
        lengths = (5, 0, 12)
        cu = torch.tensor([0, 5, 5, 17], dtype=torch.int32)
        q, k, v = self.random(17, 4, 32), self.random(17, 2, 32), self.random(17, 2, 32)
        out = aot.attention_varlen(q, k, v, cu, cu, 12, 12, is_causal=True)
        exact = torch.cat([F.scaled_dot_product_attention(*(x[cu[i] : cu[i + 1]].double().transpose(0, 1) for x in (q, k, v)),
                                                          is_causal=True, enable_gqa=True).transpose(0, 1)
                           for i in range(3) if lengths[i]])
        self.assert_within(out, exact, 4 * UNIT[q.dtype] * exact.abs().max())
        dout = torch.randn_like(out)
        for got, right in zip(torch.autograd.grad(out, (q, k, v), dout), torch.autograd.grad(exact, (q, k, v), dout.double())):
            self.assert_norm(got, right, 3 * UNIT[q.dtype])
        window = aot.attention_varlen(q, k, v, cu, cu, 12, 12, window=(3, -1))
        i, j = torch.arange(12)[:, None], torch.arange(12)
        exact = F.scaled_dot_product_attention(*(x[5:].double().transpose(0, 1) for x in (q, k, v)), j >= i - 3, enable_gqa=True)
        self.assert_within(window[5:].transpose(0, 1), exact, 4 * UNIT[q.dtype] * exact.abs().max())

    def test_nested_tensors(self):
        parts = [[torch.randn(length, 2, 32).bfloat16() for length in (4, 9)] for _ in range(3)]
        q, k, v = (torch.nested.nested_tensor(part, layout=torch.jagged, requires_grad=True) for part in parts)
        out = aot.scaled_dot_product_attention(q.transpose(1, 2), *(
            torch.nested.nested_tensor_from_jagged(x.values(), q.offsets()).transpose(1, 2) for x in (k, v)), is_causal=True)
        self.assert_none_fell_back()
        for index, got in enumerate(out.transpose(1, 2).unbind()):
            exact = F.scaled_dot_product_attention(*(part[index].double().transpose(0, 1) for part in parts), is_causal=True)
            self.assert_within(got.transpose(0, 1), exact, 4 * UNIT[torch.bfloat16] * exact.abs().max())
        out.values().sum().backward()
        self.assertTrue(q.grad.values().isfinite().all())

    def test_falls_back_with_a_reason(self):
        q = self.random(1, 1, 4, 32, dtype=torch.float32)
        cases = [
            (dict(query=q, key=q, value=q), "float32; fp16 and bf16 are supported"),
            (dict(query=q.double(), key=q.double(), value=q.double()), "float64"),
            (dict(query=q.bfloat16(), key=q.bfloat16(), value=self.random(1, 1, 4, 520)), "head dims are 32 and 520"),
        ]
        for arguments, reason in cases:
            self.reasons.clear()
            out = aot.scaled_dot_product_attention(**arguments)
            self.assertTrue(out.equal(F.scaled_dot_product_attention(**arguments)))
            self.assertEqual(len(self.reasons), 1)
            self.assertIn(reason, self.reasons[0])
        for mask, more in ((torch.ones(4, 4), dict(is_causal=True)), (torch.ones(3, 4), {}), (torch.ones(1, 1, 1, 4, 5), {})):
            with self.assertRaises(RuntimeError) as caught:
                aot.scaled_dot_product_attention(q.bfloat16(), q.bfloat16(), q.bfloat16(), mask, **more)
            self.assertNotIsInstance(caught.exception, flydsl_aot.Error)  # PyTorch's own message
        aot.emulate(False)
        self.reasons.clear()
        aot.scaled_dot_product_attention(q.bfloat16(), q.bfloat16(), q.bfloat16())
        self.assertIn("emulate()", self.reasons[0])

    def test_refusals_are_the_library_s(self):
        library = flydsl_aot.open(device="none", arch="gfx950")
        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
            for head_dim in (1, 8, 100, 256, 576, 577):
                for value_dim in (1, 512, 513):
                    q, v = torch.empty(1, 1, 4, head_dim, dtype=dtype), torch.empty(1, 1, 4, value_dim, dtype=dtype)
                    shape = flydsl_aot.shape
                    name = aot.runtime.DTYPES[dtype]
                    answer = library.query_fields("attention_forward", {
                        "q": shape(q.shape, name), "k": shape(q.shape, name), "v": shape(v.shape, name), "out": shape(v.shape, name),
                        "scale": 1.0, "mask.left": -1, "mask.right": -1})
                    refused = attention.refusal(q, q, v, None, 0.0, False, False)
                    self.assertEqual(answer.status == 0, refused == "", f"{dtype} {head_dim} {value_dim}: {answer.reason} / {refused}")

    def test_autocast(self):
        q = self.random(1, 2, 8, 32, dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            out = aot.scaled_dot_product_attention(q, q, q)
        self.assertEqual(out.dtype, torch.bfloat16)
        self.assertEqual(torch.autograd.grad(out.sum(), q)[0].dtype, torch.float32)
        self.assert_none_fell_back()


if __name__ == "__main__":
    unittest.main()
