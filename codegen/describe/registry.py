"""All operators, in alphabetical order: a new operator is one more line."""

from . import attention_backward, attention_decode, attention_forward, gemm, grouped_gemm, layer_norm, mx_quantise, rms_norm, scaled_gemm, topk

OPERATORS = (
    attention_backward.OPERATOR,
    attention_decode.OPERATOR,
    attention_forward.OPERATOR,
    gemm.OPERATOR,
    grouped_gemm.OPERATOR,
    layer_norm.OPERATOR,
    mx_quantise.OPERATOR,
    rms_norm.OPERATOR,
    scaled_gemm.OPERATOR,
    topk.OPERATOR,
)
