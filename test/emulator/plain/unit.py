"""Short runs of instructions that belong together, with labels: set-up before an instruction, branches with their targets."""

import struct


class Label:
    """A place in a unit; stands between its instructions."""


class Unit:
    """items: Instructions and Labels. An Instruction with `target` (a Label) branches there through its 16-bit field; one with
    `distance` (two Labels) ends in a 32-bit literal, the bytes from the first to the second."""

    def __init__(self, *items):
        self.items = items


def items_of(made):
    return made.items if isinstance(made, Unit) else (made,)


def link(pairs):
    """The code of a program, pairs of (Instruction or Label, its code), with branches and distances filled in."""
    places, at = {}, 0
    for item, code in pairs:
        if isinstance(item, Label):
            places[item] = at
        at += len(code)
    linked, at = [], 0
    for item, code in pairs:
        at += len(code)
        if getattr(item, "target", None):
            code = struct.pack("<h", (places[item.target] - at) // 4) + code[2:]
        elif getattr(item, "distance", None):
            first, second = item.distance
            code = code[:-4] + struct.pack("<i", places[second] - places[first])
            item.o[-1].index = places[second] - places[first] & 0xFFFFFFFF
        linked.append(code)
    return b"".join(linked)


def run(state, pairs, base, execute, limit=20000):
    """Runs a program whose code begins at `base` until it leaves the last instruction."""
    at_address, places, at = {}, {}, base
    for item, code in pairs:
        if isinstance(item, Label):
            places[item] = at
        else:
            at_address[at] = item, len(code)
            at += len(code)
    state.pc = base
    for _ in range(limit):
        if state.pc in (at, None):  # None: the program ended itself
            return
        inst, size = at_address[state.pc]
        state.next_pc = state.pc + size
        state.target = places[inst.target] if getattr(inst, "target", None) else None
        execute(state, inst)
        state.pc = state.next_pc
    raise RuntimeError("a generated program does not end")
