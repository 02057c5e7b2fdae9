"""Text to machine code through llvm-mc, one line an instruction, and the emulator's batch driver."""

import re
import struct
import subprocess
import tempfile
from pathlib import Path

from machine import ACCUMULATORS, ADDRESSES, LANES, MEMORY_BYTES, SCRATCH_BYTES, VECTORS, State
from unit import Label, items_of

PROCESSORS = ["gfx90a", "gfx942", "gfx950"]


def encode(llvm_mc, processor, lines):
    """The bytes of each line, None where the assembler refuses it."""
    result = subprocess.run([llvm_mc, "-triple=amdgcn-amd-amdhsa", f"-mcpu={processor}", "-show-encoding"],
                            input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    refused = {int(line) - 1 for line in re.findall(r"^<stdin>:(\d+):\d+: error:", result.stderr, re.M)}
    codes = [bytes(int(b, 16) for b in found.split(","))
             for found in re.findall(r"encoding: \[([^\]]*)\]", result.stdout)]
    if len(codes) != len(lines) - len(refused):
        raise RuntimeError(f"llvm-mc gave {len(codes)} encodings for {len(lines)} lines, {len(refused)} refused\n"
                           + result.stderr[:2000])
    accepted = iter(codes)
    return [None if i in refused else next(accepted) for i in range(len(lines))]


def assemble(llvm_mc, processor, units):
    """Each unit as a list of (Instruction or Label, code), None where the assembler refuses one of its instructions."""
    items = [item for made in units for item in items_of(made) if not isinstance(item, Label)]
    codes = iter(encode(llvm_mc, processor, [item.text() for item in items]))
    pairs = [[(item, b"" if isinstance(item, Label) else next(codes)) for item in items_of(made)] for made in units]
    return [None if any(code is None for _, code in made) else made for made in pairs]


END = struct.pack("<II", 0xBF8C0000, 0xBF810000)  # s_waitcnt for everything, s_endpgm


def pack_state(state):
    words = struct.pack("<130I", state.scc, state.mode, *state.s)
    files = b"".join(struct.pack(f"<{LANES}I", *row) for row in state.v + state.a)
    return words + files + bytes(state.lds) + bytes(state.memory) + b"".join(state.scratch)


def unpack_state(data):
    state = State()
    words = struct.unpack_from("<130I", data)
    state.scc, state.mode, state.s = words[0], words[1], list(words[2:])
    at = 520
    for file in (state.v, state.a):
        for reg in range(len(file)):
            file[reg] = list(struct.unpack_from(f"<{LANES}I", data, at))
            at += 4 * LANES
    state.lds, at = bytearray(data[at:at + MEMORY_BYTES]), at + MEMORY_BYTES
    state.memory, at = bytearray(data[at:at + MEMORY_BYTES]), at + MEMORY_BYTES
    state.scratch = [bytearray(data[i:i + SCRATCH_BYTES]) for i in range(at, len(data), SCRATCH_BYTES)]
    return state


STATE_BYTES = 520 + (VECTORS + ADDRESSES + ACCUMULATORS) * LANES * 4 + 2 * MEMORY_BYTES + LANES * SCRATCH_BYTES


def run_engine(driver, processor, programs):
    """programs: (code, initial state). Returns (fault text, final state) of each; the state's pc is where the code was."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out")
        with source.open("wb") as file:
            for code, state in programs:
                code += END
                file.write(struct.pack("<II", PROCESSORS.index(processor), len(code)) + code + pack_state(state))
        subprocess.run([driver, source, target], check=True)
        data, at, results = target.read_bytes(), 0, []
    for _ in programs:
        base, length = struct.unpack_from("<QI", data, at)
        fault = data[at + 12:at + 12 + length].decode()
        at += 12 + (length + 3) // 4 * 4
        state = unpack_state(data[at:at + STATE_BYTES])
        state.pc = base
        results.append((fault, state))
        at += STATE_BYTES
    return results
