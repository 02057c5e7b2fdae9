"""layer_norm: arguments beside those of rms_norm, and its instances."""

from . import norm
from .attention_arguments import strides
from .model import Argument
from .rows import Spread

_ARGUMENTS = (
    Argument("const void *", "bias", "null: 0"),
    Argument("float *", "mean", "null: not wanted"),
    *strides("mean", "oi"),
    Argument("uint32_t", "bias_dtype", "flydsl_aot_dtype"),
)

# Those of rms_norm that lengths of rows in common models need.
_SPREADS = (
    Spread(256, 16, 1),
    Spread(128, 32, 4),
    Spread(64, 64, 4),
    Spread(128, 128, 4),
    Spread(128, 128, 5),
    Spread(256, 256, 4),
    Spread(512, 512, 4, held=True),
    Spread(512, 512, 4),
    Spread(1024, 1024, 4),
    Spread(1024, 1024, 8, held=True),
    Spread(1024, 1024, 4, looped=True),
    Spread(256, 32, 1, wide=False),
    Spread(256, 256, 1, wide=False),
    Spread(1024, 1024, 1, wide=False, looped=True),
)
_QUANTISED_SPREADS = (
    Spread(256, 256, 2),
    Spread(1024, 1024, 2, looped=True),
    Spread(256, 256, 1, wide=False),
    Spread(1024, 1024, 1, wide=False, looped=True),
)

OPERATOR = norm.operator("layer_norm", _SPREADS, _QUANTISED_SPREADS, _ARGUMENTS)
