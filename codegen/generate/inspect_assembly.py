"""Fails when the compiler itself uses accumulation registers that a kernel's inline assembly names.

usage: python3 codegen/generate/inspect_assembly.py kernel.s
Such kernels hide accumulators from the compiler (kernels/attention_forward/pipelined/accumulators.hip.h). It is told to keep
nothing in these registers across certain points, but may use them between two of them: to spill, or for a result of its own.
clang brackets inline assembly with the comments ;#ASMSTART and ;#ASMEND.
"""

import argparse
import re
import sys
from pathlib import Path

_OPERAND = re.compile(r"(?<![\w.$@])a(?:(\d+)|\[(\d+)(?::(\d+))?\])(?!\w)")


def _registers(instruction):
    found = set()
    for one, first, last in _OPERAND.findall(instruction):
        begin = int(one or first)
        found.update(range(begin, int(last or begin) + 1))
    return found


def foreign_uses(assembly):
    """[(line number, instruction)] outside inline assembly that name a register which inline assembly names, too."""
    inside = False
    hidden, others = set(), []
    for number, line in enumerate(assembly.splitlines(), 1):
        if "#ASMSTART" in line:
            inside = True
        elif "#ASMEND" in line:
            inside = False
        else:
            instruction = line.split(";")[0].strip()
            if not instruction or instruction.startswith("."):
                continue
            registers = _registers(instruction)
            if inside:
                hidden |= registers
            elif registers:
                others.append((number, instruction, registers))
    return hidden, [(number, instruction) for number, instruction, registers in others if registers & hidden]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assembly", type=Path)
    path = parser.parse_args().assembly
    hidden, foreign = foreign_uses(path.read_text())
    if not hidden:
        sys.exit(f"{path.name}: no inline assembly names an accumulation register; the check would say nothing")
    if foreign:
        uses = "\n".join(f"  line {number}: {instruction}" for number, instruction in foreign[:8])
        sys.exit(f"{path.name}: {len(foreign)} instructions of the compiler's use hidden accumulation registers\n{uses}")


if __name__ == "__main__":
    main()
