"""rms_norm: its instances.

Another length of rows to be read once is one more row of _SPREADS.
"""

from . import norm
from .rows import Spread

# In the order of preference; the first that has room for a row is taken.
_SPREADS = (
    Spread(256, 16, 1),
    Spread(256, 32, 2),
    Spread(128, 32, 4),
    Spread(128, 64, 4),
    Spread(128, 128, 4),
    Spread(128, 128, 5),
    Spread(256, 256, 3),
    Spread(256, 256, 4),
    Spread(512, 512, 4, held=True),
    Spread(512, 512, 4),
    Spread(1024, 1024, 4),
    Spread(1024, 1024, 8),
    Spread(1024, 1024, 8, held=True),
    Spread(1024, 1024, 4, looped=True),
    Spread(256, 32, 1, wide=False),
    Spread(256, 256, 1, wide=False),
    Spread(1024, 1024, 1, wide=False),
    Spread(1024, 1024, 1, wide=False, looped=True),
)
_QUANTISED_SPREADS = (
    Spread(256, 32, 2),
    Spread(256, 256, 2),
    Spread(1024, 1024, 2),
    Spread(1024, 1024, 2, looped=True),
    Spread(256, 256, 1, wide=False),
    Spread(1024, 1024, 1, wide=False, looped=True),
)

OPERATOR = norm.operator("rms_norm", _SPREADS, _QUANTISED_SPREADS)
