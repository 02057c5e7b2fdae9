"""All operators, in alphabetical order: a new operator is one more line."""

from . import attention_backward, attention_decode, attention_forward, gemm, grouped_gemm, layer_norm, layer_norm_backward, mx_quantise, rms_norm, rms_norm_backward, scaled_gemm, topk, topk_softmax

OPERATORS = (
    attention_backward.OPERATOR,
    attention_decode.OPERATOR,
    attention_forward.OPERATOR,
    gemm.OPERATOR,
    grouped_gemm.OPERATOR,
    layer_norm.OPERATOR,
    layer_norm_backward.OPERATOR,
    mx_quantise.OPERATOR,
    rms_norm.OPERATOR,
    rms_norm_backward.OPERATOR,
    scaled_gemm.OPERATOR,
    topk.OPERATOR,
    topk_softmax.OPERATOR,
)
