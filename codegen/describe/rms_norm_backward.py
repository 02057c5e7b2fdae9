"""rms_norm_backward: its instances are norm_backward's."""

from . import norm_backward

OPERATOR = norm_backward.operator("rms_norm_backward")
