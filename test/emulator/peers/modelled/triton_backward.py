"""Triton's attention backward (fetch/triton_backward.py) on problems of any size: three launches, each in the fastest of its configurations."""
import math

from launch.recipe import ceil
from modelled.tensors import Unsupported, untouched
from modelled.triton import LARGEST_TENSOR, Objects, strides


def objects_of(folder):
    return Objects(folder, "triton_backward")


def launch_sums(hip, objects, o, do, delta):
    batch, seq, heads, dim = o.shape
    name = f"d{dim}"
    objects.launch(hip, "sums", name, (ceil(seq, objects.index["sums"][name]["constants"]["BM"]), heads, batch), o.buffer, do.buffer, delta,
                   *strides(o, "batch", "head", "row"), seq)


def launch(hip, objects, kind, name, q, k, v, do, lse, delta, gradients):
    """`kind` keys: `gradients` are dK, dV; queries: dQ."""
    info = objects.index[kind][name]
    batch, seq_q, heads, dim = q.shape
    seq_k = k.shape[1]
    steps = [step for tensor in (q, k, v, do) for step in strides(tensor, "batch", "head", "row")]
    objects.launch(hip, kind, name, (heads, (seq_k if kind == "keys" else seq_q) // info["own"], batch), q.buffer, k.buffer, v.buffer, do.buffer, lse,
                   delta, *(x.buffer for x in gradients), dim**-0.5, dim**-0.5 * math.log2(math.e), *steps, heads, seq_q, seq_k)


def attention_backward(folder, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v, causal, dtype, layout):
    """A list of {configuration: a function of hip that launches it}, one for each launch."""
    if causal not in ("none", "bottom-right") and not (causal == "top-left" and seqlen_q == seqlen_k):
        raise Unsupported("compiled without a mask and with one aligned with the bottom right")
    if heads_q != heads_kv or dtype != "bf16":
        raise Unsupported(f"compiled for bf16 with a head of K to each of Q; not {dtype}, {heads_q}/{heads_kv}")
    if 2 * batch * heads_q * max(seqlen_q, seqlen_k) * head_dim > LARGEST_TENSOR:
        raise Unsupported("compiled for tensors of up to 2 GiB")
    objects = objects_of(folder)

    def fits(constants):
        return seqlen_q % constants["BM"] == 0 and seqlen_k % constants["BN"] == 0

    def launcher(kind, name):
        def run(hip):
            q, dq = (untouched(hip, batch, seqlen_q, heads_q, head_dim, layout) for _ in range(2))
            o, do = (untouched(hip, batch, seqlen_q, heads_q, head_dim_v, layout) for _ in range(2))
            (k, dk), (v, dv) = ([untouched(hip, batch, seqlen_k, heads_kv, dim, layout) for _ in range(2)] for dim in (head_dim, head_dim_v))
            lse, delta = (hip.memory(4 * batch * heads_q * seqlen_q) for _ in range(2))
            if kind == "sums":
                launch_sums(hip, objects, o, do, delta)
            else:
                launch(hip, objects, kind, name, q, k, v, do, lse, delta, (dk, dv) if kind == "keys" else (dq,))

        return run

    stages = [{f"sums_d{head_dim_v}": launcher("sums", "")}]
    for kind in ("keys", "queries"):
        names = objects.of(kind, head_dim=head_dim, head_dim_v=head_dim_v, causal=causal != "none")
        stages.append({f"{kind}_{name}": launcher(kind, name) for name in names if fits(objects.index[kind][name]["constants"])})
        if not stages[-1]:
            raise Unsupported(f"not compiled for head dims {head_dim}/{head_dim_v} and lengths {seqlen_q}, {seqlen_k}")
    return stages
