"""Which kernels a peer has for an operator's problem: {name: a function of hip that launches it}, or a list of such, one for each launch."""
from modelled import aiter, aiter_backward, flydsl, products, triton, triton_backward, triton_features
from modelled.families import with_feature
from modelled.tensors import Unsupported


def attention_forward(objects, peer, p):
    numbers = {name: int(p[name]) for name in ("batch", "heads_q", "heads_kv", "seqlen_q", "seqlen_k", "head_dim", "head_dim_v")}
    described = dict(causal=p["causal"], dtype=p["dtype"], layout=p.get("layout", "bshd"))
    if with_feature(p):
        if peer != "triton":
            raise Unsupported(f"compiled without {p['features']}")
        return triton_features.attention_forward(objects, p, **numbers, **described)
    if peer == "aiter":
        return {"fmha_v3_fwd": aiter.attention_forward(objects, **numbers, **described)}
    if peer == "triton":
        return triton.attention_forward(objects, **numbers, **described)
    raise Unsupported("the wheels have no attention kernel of FlyDSL's")


def attention_decode(objects, peer, p):
    if peer == "flydsl":
        raise Unsupported("the wheels have no attention kernel of FlyDSL's")
    if p.get("features", "none") != "none":
        raise Unsupported(f"compiled without {p['features']}")
    # The last query of a causal mask that is aligned with the bottom right sees all keys.
    if p["seqlen_q"] != "1" or p["causal"] not in ("none", "bottom-right"):
        raise Unsupported("compiled for one query a sequence that sees all keys")
    numbers = {name: int(p[name]) for name in ("batch", "heads_q", "heads_kv", "seqlen_k", "block_size", "head_dim", "head_dim_v")}
    lengths = [int(number) for number in p["seqused_k"].split(",") if number] or [numbers["seqlen_k"]] * numbers["batch"]
    described = dict(lengths=lengths, dtype=p["dtype"], kv_dtype=p["kv_dtype"])
    if peer == "aiter":
        del numbers["seqlen_k"]
        return aiter.attention_decode(objects, **numbers, **described)
    return triton.attention_decode(objects, layout=p["layout"], **numbers, **described)


def attention_backward(objects, peer, p):
    if p.get("features", "none") != "none":
        raise Unsupported(f"compiled without {p['features']}")
    numbers = {name: int(p[name]) for name in ("batch", "heads_q", "heads_kv", "seqlen_q", "seqlen_k", "head_dim", "head_dim_v")}
    described = dict(causal=p["causal"], dtype=p["dtype"], layout=p.get("layout", "bshd"))
    if peer == "aiter":
        return aiter_backward.attention_backward(objects, **numbers, **described)
    if peer == "triton":
        return triton_backward.attention_backward(objects, **numbers, **described)
    raise Unsupported("the wheels have no attention kernel of FlyDSL's")


def others(operator):
    def launchers(objects, peer, p):
        if peer != "flydsl":
            raise Unsupported(f"no kernel of {peer}'s for {operator}")
        return getattr(flydsl, operator)(objects, **p)

    return launchers


OPERATORS = dict(attention_forward=attention_forward, attention_decode=attention_decode, attention_backward=attention_backward,
                 gemm=products.gemm, grouped_gemm=products.grouped_gemm, scaled_gemm=products.scaled_gemm, rms_norm=others("rms_norm"), topk=others("topk"))


def launchers(objects, operator, peer, problem):
    if operator not in OPERATORS:
        raise Unsupported(f"no kernels for {operator}; there are some for {', '.join(OPERATORS)}")
    return OPERATORS[operator](objects, peer, problem)
