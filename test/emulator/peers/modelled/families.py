"""Which families of fetch.sh have a peer's kernels for an operator's problem. Imports nothing that fetch.sh installs."""


def with_feature(problem):
    return problem.get("features", "none") != "none"


PRODUCTS = ("gemm", "grouped_gemm", "scaled_gemm")


def families(operator, peer, problem):
    if operator in PRODUCTS:
        return dict(aiter=("aiter",), triton=("triton_gemm",), flydsl=("flydsl",))[peer]
    if peer == "triton" and operator == "attention_backward":
        return ("triton_backward",)
    if peer == "triton":
        return ("triton_features",) if operator == "attention_forward" and with_feature(problem) else ("triton_attention",)
    return dict(aiter=("aiter", "triton_attention"), flydsl=("flydsl",))[peer]
