"""Which kernels a peer has for a matrix product: the problems of README.md as the functions of modelled/ take them."""
from modelled import aiter, flydsl, triton_gemm
from modelled.tensors import Unsupported


def refuse_features(p):
    if p.get("features", "none") != "none":
        raise Unsupported(f"compiled without {p['features']}")


def sizes(p):
    return {name: int(p[name]) for name in ("m", "n", "k")}


def transposed(p, name):
    return p.get(name, "0") == "1"


def gemm(objects, peer, p):
    refuse_features(p)
    if p.get("batch", "1") != "1":
        raise Unsupported("compiled for one product")
    dtype, a_t, b_t = p["dtype"], transposed(p, "transpose_a"), transposed(p, "transpose_b")
    out = p.get("dtype_out", dtype)
    if p.get("dtype_b", dtype) != dtype:
        raise Unsupported("compiled for operands of one type")
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
    if p["axis"] != "rows" or (p["a_order"], p["d_order"]) != ("mk", "mn"):
        raise Unsupported("compiled for groups along the rows of a row-major A")
    if p["d_dtype"] != "bf16" or p["bias"] != "none":
        raise Unsupported("compiled for a result of bf16 without bias")
    ends = [int(end) for end in p["offsets"].split(",") if end]
    if not ends:
        raise Unsupported("the offsets are not told")
    dtype = p["dtype"]
    if p.get("scales", "none") != "none":
        if (dtype, p["dtype_b"], p["scales"]) != ("e4m3", "e4m3", "plain"):
            raise Unsupported("compiled for e4m3 with plain scales")
        dtype = "mxfp8"
    described = dict(ends=ends, dtype=dtype, transpose_b=p["b_order"] == "nk")
    if peer == "triton":
        return triton_gemm.grouped_gemm(objects, **sizes(p), **described)
    if peer == "flydsl":
        return flydsl.grouped_gemm(objects, **sizes(p), **described)
    raise Unsupported("the wheel has no grouped assembly product")
