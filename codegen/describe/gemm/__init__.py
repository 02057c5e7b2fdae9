"""gemm: arguments, functional key and the families of instances.

A new family of fast instances is one more file with its key from keys.py, its name in _FAMILIES, and its code in kernels/gemm/.
"""

from ..architectures import MATRIX
from ..model import Operator, Table
from ..rows import WMMA_ARCHITECTURES
from . import few_rows, general, portable, tiles
from .arguments import ARGUMENTS
from .keys import K_GRANULE, KEY_FIELDS

_FAMILIES = (tiles, few_rows, general)
_FAMILIES_BEFORE_GFX950 = (few_rows, general)


def _instances(arch):
    if arch in WMMA_ARCHITECTURES:
        return portable.instances(arch)
    if arch not in MATRIX:
        return ()
    families = _FAMILIES if arch == "gfx950" else _FAMILIES_BEFORE_GFX950
    return tuple(instance for family in families for instance in family.instances(arch))


def _compiled(arch):
    """Those that fit any problem."""
    if arch in WMMA_ARCHITECTURES:
        return portable.instances(arch)
    return general.instances(arch) if arch in MATRIX else ()


def _fast_tiles():
    """(a_dtype, b_dtype, layout, tile, rows, columns, work-groups a compute unit that have one after the other, or 0) of fast instances."""
    rows = set()
    for instance in _instances("gfx950"):
        key, (tile_rows, tile_columns, groups) = dict(instance.key), instance.tile
        if key.get("tile", 0) != 0:
            rows.add((key["a_dtype"], key["b_dtype"], key["layout"], key["tile"], tile_rows, tile_columns, groups))
    return tuple(sorted(rows))


OPERATOR = Operator(
    name="gemm",
    grid_rule="linear_tiles",
    arguments=ARGUMENTS,
    key_fields=KEY_FIELDS,
    instances=_instances,
    portable=portable.instances,
    compiled=_compiled,
    tables=(
        Table(
            "fast_tiles",
            "X(a_dtype, b_dtype, layout, tile, rows, columns, groups) of each functional key that has fast instances.",
            _fast_tiles(),
        ),
        Table("k_granule", "X(K): parts of K are multiples.", ((K_GRANULE,),)),
    ),
)
