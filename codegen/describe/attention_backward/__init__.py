"""attention_backward: arguments, functional key, head-dim classes and the families of instances, best first.

A new variant is one more value in a family's lists, and its code in kernels/attention_backward/; a new family is one more file.
"""

from .. import architectures
from ..model import Operator, Table
from . import fused, general, passes, plain
from .arguments import ARGUMENTS
from .keys import KEY_FIELDS, PASSES

_FAMILIES = (passes, fused, plain, general)


def _instances(arch):
    if arch not in architectures.MATRIX:
        return ()
    return tuple(instance for family in _FAMILIES for instance in family.instances(arch))


def _compiled(arch):
    """The general passes: dq, dk and dv by a kernel for each."""
    return passes.compiled(arch) + general.compiled(arch) if arch in architectures.MATRIX else ()


OPERATOR = Operator(
    name="attention_backward",
    grid_rule="linear_tiles",
    arguments=ARGUMENTS,
    key_fields=KEY_FIELDS,
    instances=_instances,
    compiled=_compiled,
    tables=(
        Table("head_dim_classes", "X(D, Dv) of each head-dim class, the first that holds a problem serves it.", general.CLASSES),
        Table("compiled_classes", "X(D, Dv) of further ones, whose kernels are compiled at run time.", general.COMPILED_CLASSES),
        Table("costs", "X(pass, rows, cost alone, cost of many) by which dq, dk and dv are left to one kernel, or to two.", fused.COSTS),
        Table("passes", "X(name, number) of what a call launches.", tuple(PASSES.items())),
    ),
)
