"""layer_norm_backward: arguments beside those of rms_norm_backward."""

from . import norm_backward
from .attention_arguments import strides
from .model import Argument

_ARGUMENTS = (
    Argument("const float *", "mean"),
    *strides("mean", "oi"),
    Argument("void *", "dbias", "null: not wanted"),
    Argument("float *", "dbias_sums", "as dweight_sums"),
    Argument("uint32_t", "dbias_dtype", "flydsl_aot_dtype"),
)

OPERATOR = norm_backward.operator("layer_norm_backward", _ARGUMENTS)
