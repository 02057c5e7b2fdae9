"""The way of a GPU: PyTorch's own memory, workspace and stream, nothing copied. PyTorch has no GPU here, so its CPU memory is made known to the
emulator for the time of a call (hipHostRegister), and the calls run on a stream of the emulator."""

import contextlib
import ctypes
import unittest
from unittest import mock

import torch
import torch.nn.functional as F

import flydsl_aot.torch as aot
from flydsl_aot.torch import attention, runtime
from support import UNIT, Case


class Device(Case):
    def setUp(self):
        super().setUp()
        self.handle = runtime.handle_for(torch.device("cpu"))
        self.hip = ctypes.CDLL(self.handle.info().device_library)
        stream = ctypes.c_void_p()
        self.assertEqual(self.hip.hipStreamCreate(ctypes.byref(stream)), 0)
        self.addCleanup(self.hip.hipStreamDestroy, stream)
        self.stream = stream.value
        self.workspaces = []
        launch = self.handle.launch

        def launch_on_known_memory(operator, fields, stream, allocate):
            self.assertEqual(stream, self.stream)
            launch(operator, fields, stream, lambda size: self.known(*allocate(size)))
            self.assertEqual(self.hip.hipStreamSynchronize(ctypes.c_void_p(stream)), 0)

        for patch in (mock.patch.object(self.handle, "emulated", False), mock.patch.object(self.handle, "launch", launch_on_known_memory),
                      mock.patch("torch.cuda.device", lambda device: contextlib.nullcontext()),
                      mock.patch("torch.cuda.current_stream", lambda device: mock.Mock(cuda_stream=self.stream)),
                      mock.patch.object(runtime, "launch", self.launch(runtime.launch))):
            patch.start()
            self.addCleanup(patch.stop)

    def known(self, address, owner):
        self.register([owner])
        self.workspaces.append(owner)
        return address, owner

    def register(self, tensors):
        for storage in {x.untyped_storage().data_ptr(): x.untyped_storage() for x in tensors if x.numel()}.values():
            self.assertEqual(self.hip.hipHostRegister(ctypes.c_void_p(storage.data_ptr()), ctypes.c_size_t(storage.nbytes()), 0), 0)
            self.registered.append(storage.data_ptr())

    def launch(self, original):
        def call(operator, fields, outputs, device):
            self.registered = []
            self.register([value for value in fields.values() if isinstance(value, torch.Tensor)])
            try:
                original(operator, fields, outputs, device)
            finally:
                for address in self.registered:
                    self.assertEqual(self.hip.hipHostUnregister(ctypes.c_void_p(address)), 0)

        return call

    def test_attention(self):
        q, k, v = self.random(2, 9, 4, 32), self.random(2, 2, 11, 32), self.random(2, 2, 11, 32)
        bias = self.random(9, 11)
        out = aot.scaled_dot_product_attention(q.transpose(1, 2), k, v, bias, enable_gqa=True)
        exact = F.scaled_dot_product_attention(q.double().transpose(1, 2), k.double(), v.double(), bias.double(), enable_gqa=True)
        self.assert_within(out, exact, 4 * UNIT[q.dtype] * exact.abs().max())
        dout = torch.randn_like(out)
        for got, right in zip(torch.autograd.grad(out, (q, k, v, bias), dout), torch.autograd.grad(exact, (q, k, v, bias), dout.double())):
            self.assert_norm(got, right, 3 * UNIT[q.dtype])
        self.assertEqual(len(self.workspaces), 1)  # the backward call's, of PyTorch's allocator
        self.assert_none_fell_back()

    def test_seeds_are_read_where_they_are(self):
        q = self.random(1, 1, 16, 32, grad=False)
        seed = torch.tensor([77, 1000])
        arguments = (q, q, q, None, None, seed, None, None, 0, 0, 0.2, 0, -1, -1, 0.5)
        here = attention.attention_forward(*arguments)[0]
        with mock.patch.object(self.handle, "emulated", True), mock.patch.object(self.handle, "launch", type(self.handle).launch.__get__(self.handle)):
            copied = attention.attention_forward(*arguments)[0]
        self.assertTrue(here.equal(copied))
        seed[0] += 1
        self.assertFalse(here.equal(attention.attention_forward(*arguments)[0]))

    def test_norms_topk_and_products(self):
        x, w = self.random(5, 48, dtype=torch.float32), self.random(48, dtype=torch.float32)
        out, exact = aot.rms_norm(x, [48], w, 1e-5), F.rms_norm(x, [48], w, 1e-5)
        self.assert_within(out, exact, 1e-5)
        for got, right in zip(torch.autograd.grad(out.sum(), (x, w)), torch.autograd.grad(exact.sum(), (x, w))):
            self.assert_norm(got, right, 1e-5)
        self.assertTrue(aot.topk(x, 3).indices.equal(torch.topk(x, 3).indices))
        self.assert_norm(aot.addmm(w[:5], x, x.T), torch.addmm(w[:5].double(), x.double(), x.double().T), 2.0**-20)
        ends = torch.tensor([2, 5], dtype=torch.int32)
        experts = self.random(2, 48, 16)
        out = aot.grouped_mm(x.bfloat16(), experts, offs=ends)
        self.assert_norm(out, torch.cat([x[:2].bfloat16().double() @ experts[0].double(), x[2:].bfloat16().double() @ experts[1].double()]),
                         2 * UNIT[torch.bfloat16])
        self.assert_none_fell_back()


if __name__ == "__main__":
    unittest.main()
