"""Triton's compiled kernels on problems of any size: sweeps over the configurations of attention kernels, and small helpers."""
import json
import math
import pathlib

import numpy as np

from launch.hip import pack
from launch.recipe import ceil
from modelled.tensors import Unsupported, untouched

LARGEST_TENSOR = 2**31  # bytes; flash_attention is compiled as Triton's launcher compiles for tensors that 32-bit offsets reach
WIDTH = dict(bf16=2, e4m3=1)  # bytes of an element


class Objects:
    """The objects of fetch/compile_FAMILY.py: those of the tests and, where it was fetched, the sweep."""

    def __init__(self, objects, family="triton_attention"):
        self.index = {}
        for folder in (pathlib.Path(objects, name) for name in (family, f"{family}_sweep")):
            if (folder / f"{family}.json").is_file():
                for kind, entries in json.loads((folder / f"{family}.json").read_text()).items():
                    if kind != "dropped":
                        self.index.setdefault(kind, {}).update({name: entry | dict(path=folder / kind / f"{name}.co") for name, entry in entries.items()})

    def of(self, kind, **problem):
        """Names of the kernels that were compiled for it."""
        return [name for name, entry in self.index[kind].items() if all(entry["problem"][key] == value for key, value in problem.items())]

    def launch(self, hip, kind, name, grid, *arguments):
        info = self.index[kind][name]
        packed = [pack(np.float32(value) if t == "fp32" else value) for value, t in zip(arguments, info["types"], strict=True)]
        nothing = np.uint64(0).tobytes()  # Triton's launchers pass two scratch pointers
        hip.load(info["path"]).launch_params(grid, (info["block"],), [*packed, nothing, nothing], info["shared"])


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


def strides(tensor, *names):
    """In elements."""
    return [getattr(tensor, name) // WIDTH[tensor.kind] for name in names]


def launch_attention(hip, objects, name, q, k, v, o, lse):
    """One configuration; q, k, v, o are Tensors, `lse` takes (B, H, S) FP32."""
    info = objects.index["attention"][name]
    batch, seq_q, heads_q, dim = q.shape
    _, seq_k, heads_kv, _ = k.shape
    steps = [step for tensor in (q, k, v, o) for step in strides(tensor, "batch", "head", "row")]
    objects.launch(hip, "attention", name, (heads_q, ceil(seq_q, info["constants"]["BM"]), batch), q.buffer, k.buffer, v.buffer, o.buffer, lse,
                   dim**-0.5 * math.log2(math.e), 1.0, *steps, heads_q, heads_kv, seq_q, seq_k)


def launch_decode(hip, objects, name, splits, q, k, v, o, part, part_lse, table, lengths, blocks_of_a_sequence):
    """Both stages; q, o (B, 1, Hq, D) and k, v (B or blocks, keys, Hkv, D) are Tensors; part (B, Hq, splits, Dv), part_lse: FP32 scratch."""
    constants = objects.index["split"][name]["constants"]
    batch, _, heads_q, dim = q.shape
    steps = strides(q, "batch", "head") + [step for tensor in (k, v) for step in strides(tensor, "batch", "head", "row")]
    grid = (batch, k.shape[2] * ceil(constants["GROUP"], constants["BH"]), splits)
    objects.launch(hip, "split", name, grid, q.buffer, k.buffer, v.buffer, part, part_lse, table, lengths, dim**-0.5 * math.log2(math.e), *steps,
                   blocks_of_a_sequence)
    launch_join(hip, objects, splits, part, part_lse, (heads_q * splits, splits, 1), o)


def launch_join(hip, objects, splits, part, part_lse, steps, o):
    """The second stage; `steps`: strides of part_lse between sequences, heads and shares."""
    batch, _, heads, dim = o.shape
    objects.launch(hip, "join", f"splits{splits}_d{dim}", (batch, heads), part, part_lse, o.buffer, *steps, *strides(o, "batch", "head"))


def attention_forward(folder, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v, causal, dtype, layout):
    """{configuration: a function of hip that launches it}, for everything that was compiled for the problem."""
    if causal not in ("none", "bottom-right") and not (causal == "top-left" and seqlen_q == seqlen_k):
        raise Unsupported("compiled without a mask and with one aligned with the bottom right")
    if 2 * batch * max(heads_q * seqlen_q, heads_kv * seqlen_k) * head_dim > LARGEST_TENSOR:
        raise Unsupported("compiled for tensors of up to 2 GiB")
    objects = Objects(folder)
    names = objects.of("attention", head_dim=head_dim, head_dim_v=head_dim_v, dtype=dtype, causal=causal != "none")
    if not names:
        raise Unsupported(f"not compiled for {dtype} and head dims {head_dim}/{head_dim_v}")

    def launcher(name):
        def run(hip):
            q, o = (untouched(hip, batch, seqlen_q, heads_q, dim, layout, kind) for dim, kind in ((head_dim, dtype), (head_dim_v, "bf16")))
            k, v = (untouched(hip, batch, seqlen_k, heads_kv, dim, layout, dtype) for dim in (head_dim, head_dim_v))
            launch_attention(hip, objects, name, q, k, v, o, hip.memory(4 * batch * heads_q * seqlen_q))

        return run

    return {name: launcher(name) for name in names}


def attention_decode(folder, batch, heads_q, heads_kv, seqlen_k, lengths, block_size, head_dim, head_dim_v, dtype, kv_dtype, layout):
    """As attention_forward, for each configuration of the first stage and each number of shares that makes one to 16 work-groups a compute unit."""
    objects = Objects(folder)
    names = objects.of("split", head_dim=head_dim, head_dim_v=head_dim_v, dtype_kv=kv_dtype, group=heads_q // heads_kv, page=block_size)
    if dtype != "bf16" or not names:
        raise Unsupported(f"not compiled for {dtype} with {kv_dtype} keys, head dims {head_dim}/{head_dim_v}, {heads_q // heads_kv} heads of Q to one "
                          f"of K, pages of {block_size}")
    blocks = ceil(seqlen_k, block_size) if block_size else 0

    def launcher(name, splits):
        def run(hip):
            q, o = (untouched(hip, batch, 1, heads_q, dim, layout) for dim in (head_dim, head_dim_v))
            rows, keys = (batch * blocks, block_size) if block_size else (batch, seqlen_k)
            k = untouched(hip, rows, keys, heads_kv, head_dim, layout, kv_dtype)
            v = k if objects.index["split"][name]["constants"]["SHARED"] else untouched(hip, rows, keys, heads_kv, head_dim_v, layout, kv_dtype)
            used, table = hip.memory(4 * batch), hip.memory(4 * max(rows, 1))
            used.write(np.array(lengths, np.int32))
            if block_size:
                table.write(np.random.default_rng(5).permutation(rows).astype(np.int32))
            part, part_lse = (hip.memory(4 * batch * heads_q * splits * width) for width in (head_dim_v, 1))
            launch_decode(hip, objects, name, splits, q, k, v, o, part, part_lse, table, used, blocks)

        return run

    counts = [entry["constants"]["SPLITS"] for entry in objects.index["join"].values() if entry["constants"]["V"] == head_dim_v]
    groups = {name: batch * heads_kv * ceil(objects.index["split"][name]["constants"]["GROUP"], objects.index["split"][name]["constants"]["BH"])
              for name in names}
    found = {f"{name}_splits{count}": launcher(name, count) for name in names for count in sorted(set(counts)) if 256 <= groups[name] * count <= 4096}
    if not found:
        raise Unsupported(f"no compiled number of splits suits {batch} sequences of {heads_kv} heads")
    return found
