"""A small transformer trains through the library, and its loss follows PyTorch's own."""

import unittest

import torch
import torch.nn.functional as F
from torch import nn

import flydsl_aot.torch as aot
from support import Case

VOCABULARY, WIDTH, HEADS, KEY_HEADS, LENGTH, BATCH, STEPS = 24, 32, 4, 2, 12, 4, 20


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = WIDTH // HEADS
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(2))
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KEY_HEADS) * self.size, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).unflatten(-1, (-1, self.size)).transpose(1, 2)
        q, k, v = parts.split((HEADS, KEY_HEADS, KEY_HEADS), 1)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def losses():
    """Training to predict the next token of counting sequences, weights in fp32, arithmetic in bf16 where autocast wants it."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), Block(), Block(), nn.RMSNorm(WIDTH, eps=1e-5), nn.Linear(WIDTH, VOCABULARY))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(4)
    history = []
    for _ in range(STEPS):
        start = torch.randint(0, VOCABULARY, (BATCH, 1), generator=generator)
        step = torch.randint(1, 3, (BATCH, 1), generator=generator)
        tokens = (start + step * torch.arange(LENGTH + 1)) % VOCABULARY
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


class Transformer(Case):
    def test_loss_follows_pytorch_s(self):
        own = losses()
        aot.install(device="cpu")
        self.addCleanup(aot.uninstall, device="cpu")
        calls = []
        original = aot.runtime.launch
        aot.runtime.launch = lambda operator, *rest: calls.append(operator) or original(operator, *rest)
        self.addCleanup(setattr, aot.runtime, "launch", original)
        through = losses()
        self.assertLess(own[-1], 0.5 * own[0])
        for step, (left, right) in enumerate(zip(own, through)):
            self.assertLess(abs(left - right), 0.02 + 0.02 * abs(left), f"step {step}: {own} and {through}")
        # Two blocks: an attention each, forward and backward, in every step; five norms; products of every linear layer.
        for operator, times in (("attention_forward", 2), ("attention_backward", 2), ("rms_norm", 5), ("rms_norm_backward", 5)):
            self.assertEqual(calls.count(operator), times * STEPS, operator)
        self.assertGreaterEqual(calls.count("gemm"), 3 * 9 * STEPS - STEPS)
        self.assert_none_fell_back()
        print(f"\nloss of the first and last steps: PyTorch {own[0]:.4f} {own[-1]:.4f}, flydsl_aot {through[0]:.4f} {through[-1]:.4f}")


if __name__ == "__main__":
    unittest.main()
