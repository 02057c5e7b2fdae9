"""Triton's compiled kernels on problems of any size: a sweep over the configurations of an attention kernel, and small helpers."""
import json
import math
import pathlib

import numpy as np

from launch.hip import pack
from launch.recipe import ceil
from modelled.tensors import Unsupported, untouched

LARGEST_TENSOR = 2**31  # bytes; the objects are compiled as Triton's launcher compiles for tensors that 32-bit offsets reach


class Objects:
    """The objects of fetch/compile_triton_attention.py."""

    def __init__(self, objects):
        self.folder = pathlib.Path(objects, "triton_attention")
        self.index = json.loads((self.folder / "triton_attention.json").read_text())

    def launch(self, hip, kind, name, grid, *arguments):
        info = self.index[kind][name]
        packed = [pack(np.float32(value) if t == "fp32" else value) for value, t in zip(arguments, info["types"], strict=True)]
        nothing = np.uint64(0).tobytes()  # Triton's launchers pass two scratch pointers
        hip.load(self.folder / kind / f"{name}.co").launch_params(grid, (info["block"],), [*packed, nothing, nothing], info["shared"])


class Helpers:
    """What AITER runs around its backward kernel."""

    def __init__(self, hip, objects):
        self.hip, self.objects = hip, Objects(objects)

    def fill_zero(self, x, count):
        self.objects.launch(self.hip, "helper", "fill_zero", (ceil(count, 4096),), x, count)

    def row_dot(self, x, y, out, batch, heads, seqlen):
        self.objects.launch(self.hip, "helper", "row_dot", (ceil(seqlen, 64), heads, batch), x, y, out, heads, seqlen)

    def heads_to_rows(self, x, y, batch, heads, seqlen):
        self.objects.launch(self.hip, "helper", "heads_to_rows", (ceil(seqlen, 64), heads, batch), x, y, heads, seqlen)


def launch_attention(hip, objects, name, q, k, v, o, lse):
    """One configuration; q, k, v, o are Tensors, `lse` takes (B, H, S) FP32."""
    info = objects.index["attention"][name]
    batch, seq_q, heads_q, dim = q.shape
    _, seq_k, heads_kv, _ = k.shape
    strides = [x // 2 for tensor in (q, k) for x in (tensor.batch, tensor.head, tensor.row)]
    objects.launch(hip, "attention", name, (heads_q, ceil(seq_q, info["constants"]["BM"]), batch), q.buffer, k.buffer, v.buffer, o.buffer, lse,
                   dim**-0.5 * math.log2(math.e), *strides, heads_q, heads_kv, seq_q, seq_k)


def attention_forward(folder, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v, causal, dtype, layout):
    """{configuration: a function of hip that launches it}, for everything that was compiled for the problem."""
    if dtype != "bf16" or head_dim != head_dim_v:
        raise Unsupported(f"compiled for bf16 and V as wide as K; not {dtype} {head_dim}/{head_dim_v}")
    if causal not in ("none", "bottom-right") and not (causal == "top-left" and seqlen_q == seqlen_k):
        raise Unsupported("compiled without a mask and with one aligned with the bottom right")
    if 2 * batch * max(heads_q * seqlen_q, heads_kv * seqlen_k) * head_dim > LARGEST_TENSOR:
        raise Unsupported("compiled for tensors of up to 2 GiB")
    objects = Objects(folder)
    names = [name for name, info in objects.index["attention"].items()
             if info["constants"]["D"] == head_dim and info["constants"]["CAUSAL"] == (causal != "none")]
    if not names:
        raise Unsupported(f"compiled for head dims 64 and 128; not {head_dim}")

    def launcher(name):
        def run(hip):
            q, o = (untouched(hip, batch, seqlen_q, heads_q, head_dim, layout) for _ in range(2))
            k, v = (untouched(hip, batch, seqlen_k, heads_kv, head_dim, layout) for _ in range(2))
            launch_attention(hip, objects, name, q, k, v, o, hip.memory(4 * batch * heads_q * seqlen_q))

        return run

    return {name: launcher(name) for name in names}
