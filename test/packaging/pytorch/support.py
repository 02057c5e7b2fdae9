"""What the tests share: the emulator for CPU tensors, and bounds."""

import logging
import unittest

import torch

import flydsl_aot.torch as aot

UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}  # roundoff
SEED = 20240711


class Case(unittest.TestCase):
    """CPU tensors on the emulator, a fixed seed, and no call that falls back unless the test expects it."""

    def setUp(self):
        aot.emulate()
        torch.manual_seed(SEED)
        self.reasons = []
        handler = logging.Handler()
        handler.emit = lambda record: self.reasons.append(record.getMessage())
        log = logging.getLogger("flydsl_aot.torch")
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        log.propagate = False
        self.addCleanup(log.removeHandler, handler)

    def random(self, *sizes, dtype=torch.bfloat16, grad=True):
        return torch.randn(*sizes).to(dtype).requires_grad_(grad)

    def assert_none_fell_back(self):
        self.assertEqual(self.reasons, [])

    def assert_within(self, result, exact, bound, what=""):
        self.assertEqual(result.shape, exact.shape, what)
        error = (result.detach().double() - exact.detach().double()).abs()
        worst = (error / (torch.as_tensor(bound).detach().double() + 1e-300)).max().item() if error.numel() else 0
        self.assertTrue(bool((error <= bound).all()), f"{what}: {worst} times the bound")

    def assert_norm(self, result, exact, relative, what=""):
        """The relative error of the whole tensor in the Euclidean norm."""
        self.assertEqual(result.shape, exact.shape, what)
        error = (result.detach().double() - exact.detach().double()).norm()
        self.assertLessEqual(error.item(), relative * exact.detach().double().norm().item() + 1e-30, what)
