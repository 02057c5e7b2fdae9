"""attention_forward: arguments, functional key, head-dim classes and the families of instances, best first.

A new variant is one more value in a family's lists, and its code in kernels/attention_forward/; a new family is one more file.
"""

from .. import architectures
from ..model import Operator, Table
from ..rows import WMMA_ARCHITECTURES
from . import alternating, exact, features, float8, general, pipelined, portable
from .arguments import ARGUMENTS
from .keys import KEY_FIELDS

_FAMILIES = (pipelined, alternating, exact, float8, features, general)


def _instances(arch):
    if arch in WMMA_ARCHITECTURES:
        return portable.instances(arch)
    if arch not in architectures.MATRIX:
        return ()
    return tuple(instance for family in _FAMILIES for instance in family.instances(arch))


def _compiled(arch):
    """The general kernels; of architectures without them the portable ones."""
    if arch in WMMA_ARCHITECTURES:
        return portable.instances(arch)
    return general.compiled(arch) if arch in architectures.MATRIX else ()


OPERATOR = Operator(
    name="attention_forward",
    grid_rule="linear_tiles",
    arguments=ARGUMENTS,
    key_fields=KEY_FIELDS,
    instances=_instances,
    tables=(
        Table("head_dim_classes", "X(D, Dv) of each head-dim class, the first that holds a problem serves it.", general.CLASSES),
        Table("compiled_classes", "X(D, Dv) of further ones, whose kernels are compiled at run time.", general.COMPILED_CLASSES),
    ),
    portable=portable.instances,
    compiled=_compiled,
)
