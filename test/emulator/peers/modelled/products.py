"""Which kernels a peer has for a matrix product: the problems of README.md as the functions of modelled/ take them."""
import pathlib

from launch.recipe import ceil
from modelled import aiter, flydsl, triton_gemm
from modelled.tensors import Unsupported
from recipes import aiter_gemm
from recipes.aiter_tensors import HSA


def refuse_features(p):
    if p.get("features", "none") != "none":
        raise Unsupported(f"compiled without {p['features']}")


def sizes(p, *more):
    return {name: int(p[name]) for name in ("m", "n", "k", *more)}


def transposed(p, name):
    return p.get(name, "0") == "1"


def gemm(objects, peer, p):
    refuse_features(p)
    if p.get("batch", "1") != "1":
        raise Unsupported("compiled for one product")
    dtype, a_t, b_t = p["dtype"], transposed(p, "transpose_a"), transposed(p, "transpose_b")
    out = p.get("dtype_out", dtype)
    if peer == "aiter":
        return aiter.bf16gemm(objects, **sizes(p), dtype=dtype, dtype_out=out, layout=("t" if a_t else "n") + ("t" if b_t else "n"))
    if out != dtype:
        raise Unsupported(f"compiled for a result of {dtype}")
    if peer == "triton":
        return triton_gemm.gemm(objects, **sizes(p), dtype=dtype, layout=("t" if a_t else "n") + ("t" if b_t else "n"))
    return flydsl.gemm(objects, **sizes(p), dtype=dtype, transpose_a=a_t, transpose_b=b_t)


def scaled_gemm(objects, peer, p):
    refuse_features(p)
    if p.get("dtype_out", "bf16") != "bf16":
        raise Unsupported("compiled for a result of bf16")
    dtypes, scales = (p["dtype_a"], p["dtype_b"]), p.get("scales", "plain")
    if peer == "aiter":
        return aiter.f4gemms(objects, **sizes(p), dtypes=dtypes, scales=scales)
    if peer == "triton":
        return triton_gemm.scaled_gemm(objects, **sizes(p), dtype_a=dtypes[0], dtype_b=dtypes[1], scales=scales)
    return flydsl.scaled_gemm(objects, **sizes(p), dtypes=dtypes, scales=scales)


def grouped_gemm(objects, peer, p):
    refuse_features(p)
    if p["kind"] != "m":
        raise Unsupported("compiled for groups along M")
    if p.get("dtype_out", "bf16") != "bf16" or p.get("scales", "plain") != "plain":
        raise Unsupported("compiled for a result of bf16, and for plain scales")
    ends, b_t = [int(end) for end in p["ends"].split(",") if end], transposed(p, "transpose_b")
    if not ends:
        raise Unsupported("no groups")
    if peer == "triton":
        return triton_gemm.grouped_gemm(objects, **sizes(p), ends=ends, dtype=p["dtype"], transpose_b=b_t)
    if peer == "flydsl":
        return flydsl.grouped_gemm(objects, **sizes(p), ends=ends, dtype=p["dtype"], transpose_b=b_t)
    raise Unsupported("the wheel has no grouped assembly product")
