"""Times that others measured on an MI355X for code objects that the peers' wheels hold: what the timing model is calibrated against.

How each was measured decides what a model has to account for:
  EVENTS  HIP events around one call of an operator from Python, the device idle before (HipKittens' benchmark scripts: synchronize,
          record, call, record, synchronize). The time from the call to the first kernel counts, every kernel of the operator counts.
  KERNEL  the kernel's own duration out of a profiler, operands rotated so that caches are cold (aiter/test_common.py, `perftest`).
"""
import dataclasses

EVENTS, KERNEL = "events", "kernel"

HIPKITTENS = "HazyResearch/HipKittens f09e9685 (2025-11), analysis: AITER's rows, bf16, batch 16, 16 heads, D 128"
AITER_4205 = "ROCm/aiter#4205: the assembly kernel at 16384 keys; batch and heads are not stated, 1 and 128 are assumed here"
AITER_TUNED = "wheel amd-aiter 0.1.7.post2.dev18, aiter/configs/a4w4_blockscale_tuned_gemm.csv"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    operator: str  # attention_forward, attention_backward or f4gemm
    problem: dict
    tflops: float
    timing: str
    source: str


LENGTHS = (1024, 2048, 4096, 8192, 16384)
ATTENTION = {  # TFLOP/s by length; a causal problem counts half the products
    ("attention_forward", "full"): (828.1, 1085, 1211, 1259, 1283),
    ("attention_forward", "causal"): (554.6, 876.3, 1069, 1173, 1247),
    ("attention_backward", "full"): (589.7, 867.6, 1056, 1167, 1201),
    ("attention_backward", "causal"): (388.7, 673.1, 876.8, 1034, 1109),
}

# The table lists 202 products with M, N and K of at least 2048 that an f4gemm object won without split K. Sorted by (M, N, K), the
# middles of ten equal parts: M, N, K, tile, microseconds.
F4GEMM = (
    (2048, 8192, 7168, "256x256", 55.2862),
    (2880, 4608, 16384, "224x256", 96.5076),
    (2880, 16384, 13312, "256x256", 247.3824),
    (3200, 8192, 8192, "256x256", 104.4674),
    (4096, 5120, 5120, "192x256", 67.9041),
    (4096, 26624, 16384, "256x256", 656.538),
    (8192, 9216, 16384, "256x256", 475.0672),
    (16384, 5120, 25600, "256x256", 815.9065),
    (16384, 51200, 5120, "256x256", 1983.796),
    (32768, 14336, 8192, "256x256", 1537.4579),
)


def attention_flops(operator, batch, heads, seqlen, head_dim, head_dim_v, causal):
    """Products as everyone counts them: QK^T and PV forward, 2.5 times that backward, half of it under a causal mask."""
    forward = 2 * batch * heads * seqlen**2 * (head_dim + head_dim_v)
    return forward * (2.5 if operator == "attention_backward" else 1) * (0.5 if causal else 1)


def rows():
    for (operator, mask), figures in ATTENTION.items():
        for seqlen, tflops in zip(LENGTHS, figures, strict=True):
            # This row's milliseconds (13.22) and TFLOP/s agree, for both libraries in the file, only with a batch of 15.
            batch = 15 if (operator, mask, seqlen) == ("attention_forward", "causal", 16384) else 16
            problem = dict(batch=batch, heads=16, seqlen=seqlen, head_dim=128, head_dim_v=128, causal=mask == "causal")
            yield Row(f"{operator}/d128/{mask}/{seqlen:05}", operator, problem, tflops, EVENTS, HIPKITTENS)
    yield Row("attention_forward/d192_d128/full/16384", "attention_forward",
              dict(batch=1, heads=128, seqlen=16384, head_dim=192, head_dim_v=128, causal=False), 1288, KERNEL, AITER_4205)
    for m, n, k, tile, us in F4GEMM:
        yield Row(f"f4gemm/{m:05}x{n:05}x{k:05}", "f4gemm", dict(m=m, n=n, k=k, tile=tile), 2 * m * n * k / us * 1e-6, KERNEL, AITER_TUNED)


def flops(row):
    if row.operator == "f4gemm":
        return 2 * row.problem["m"] * row.problem["n"] * row.problem["k"]
    return attention_flops(row.operator, **row.problem)


def seconds(row):
    return flops(row) / (row.tflops * 1e12)
