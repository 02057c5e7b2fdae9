"""One instruction on the plain state."""

import compare  # noqa: F401  (fills vector.TABLE)
import convert  # noqa: F401
import lane
import memory
import numeric
import packed
import scalar
import vector
import vector_float  # noqa: F401
import vector_integer  # noqa: F401

NOT_ON = {}


def run(state, inst):
    if inst.name in vector.TABLE:
        vector.run(state, inst)
    elif inst.name in scalar.TABLE:
        scalar.run(state, inst)
    elif inst.name in packed.TABLE:
        packed.run(state, inst)
    else:
        for table in (lane.TABLE, memory.TABLE, numeric.TABLE):
            if inst.name in table:
                table[inst.name].run(state, inst)


def prepare(random, state, inst):
    """Changes the initial state so that the instruction is legal (addresses)."""
    memory.prepare(random, state, inst)
    numeric.prepare(random, state, inst)
