"""One instruction on the plain state."""

import buffer
import compare  # noqa: F401  (fills vector.TABLE)
import control
import convert  # noqa: F401
import flat
import lane
import lds
import memory
import numeric
import packed
import scalar
import scalar_memory
import vector
import vector_float  # noqa: F401
import vector_integer  # noqa: F401

NOT_ON = {}
MEMORIES = (memory, lds, flat, buffer, scalar_memory)


def run(state, inst):
    if inst.name in vector.TABLE:
        vector.run(state, control.indexed(state, inst) if state.mode >> control.INDEXING & 1 else inst)
    elif inst.name in scalar.TABLE:
        scalar.run(state, inst)
    elif inst.name in packed.TABLE:
        packed.run(state, inst)
    else:
        for family in (lane, control, numeric, *MEMORIES):
            if inst.name in family.TABLE:
                return family.TABLE[inst.name].run(state, inst)
        raise KeyError(inst.name)


def space(item):
    """Which address registers an instruction uses, None if none."""
    name = getattr(item, "name", None)
    return next((family.TABLE[name].address or None for family in MEMORIES if name in family.TABLE), None)


def prepare(random, state, item):
    """Changes the initial state so that the instruction is legal (addresses)."""
    for family in MEMORIES:
        if getattr(item, "name", None) in family.TABLE:
            family.prepare(random, state, item, family.TABLE[item.name])
    numeric.prepare(random, state, item)
