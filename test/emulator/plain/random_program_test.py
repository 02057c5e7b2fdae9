#!/usr/bin/env python3
"""Random instructions on the vectorised engine and on the plain implementation: the whole final state must agree.

Every mnemonic is run alone COUNT times, then programs of several instructions run. A disagreement prints the first
instruction after which the states differ. The seed is printed; FLYDSL_TEST_SEED or --seed repeats a run.
"""

import argparse
import os
import random
import sys
from collections import Counter

import assemble
import control
import execute
import unit
from generate import Generator
from machine import LANES

NAMES = {106: "vcc_lo", 107: "vcc_hi", 124: "m0", 126: "exec_lo", 127: "exec_hi"}


def differences(plain, engine, limit=6):
    """Texts of the places where the two states differ."""
    found = []
    if plain.scc != engine.scc:
        found.append(f"scc: plain {plain.scc}, engine {engine.scc}")
    if plain.mode != engine.mode:
        found.append(f"mode: plain {plain.mode:#x}, engine {engine.mode:#x}")
    for i, (x, y) in enumerate(zip(plain.s, engine.s)):
        if x != y:
            found.append(f"{NAMES.get(i, f's{i}')}: plain {x:#010x}, engine {y:#010x}")
    for file, ours, theirs in (("v", plain.v, engine.v), ("a", plain.a, engine.a)):
        for reg in range(len(ours)):
            if ours[reg] == theirs[reg] and not any((reg, lane) in plain.approximate for lane in range(LANES)):
                continue
            for lane in range(LANES):
                x, y = ours[reg][lane], theirs[reg][lane]
                judge = plain.approximate.get((reg, lane)) if file == "v" else None
                if judge(y) if judge else x == y:
                    continue
                found.append(f"{file}{reg} lane {lane}: plain {'approximation' if judge else f'{x:#010x}'}, "
                             f"engine {y:#010x}")
    spaces = [(name, getattr(plain, name), getattr(engine, name)) for name in ("lds", "memory")]
    spaces += [(f"scratch of lane {lane}", plain.scratch[lane], engine.scratch[lane]) for lane in range(LANES)]
    for name, x, y in spaces:
        if x != y:
            at = next(i for i in range(len(x)) if x[i] != y[i])
            found.append(f"{name}[{at:#x}]: plain {x[at:at + 16].hex()}, engine {y[at:at + 16].hex()}")
    return found[:limit]


def describe_inputs(state, inst):
    lines = [f"exec {state.exec:#018x} mode {state.mode:#05x} vcc {state.s64(106):#018x} scc {state.scc}"]
    for o in inst.o:
        if o.kind == "s":
            lines.append(f"{o.text()} = " + " ".join(f"{state.s[o.index + w]:#010x}" for w in range(o.words)))
    return "; ".join(lines)


def describe_lane(state, inst, found):
    """The vector sources of the first lane that differs."""
    lane = int(found[0].split("lane ")[1].split(":")[0]) if " lane " in found[0][:12] else None
    if lane is None:
        return ""
    return f"   lane {lane}: " + ", ".join(
        f"{o.text()} = " + "_".join(f"{(state.v if o.kind == 'v' else state.a)[o.index + w][lane]:08x}"
                                    for w in reversed(range(o.words))) for o in inst.o if o.kind in ("v", "a"))


def one_access_a_space(made):
    """Drops all but the first access to each space: the address registers of a space hold one set of addresses."""
    seen, kept = set(), []
    for pairs in made:
        spaces = {execute.space(item) for item, _ in pairs} - {None}
        if not spaces & seen:
            kept.append(pairs)
            seen |= spaces
    return kept


class Test:
    def __init__(self, options, processor, seed):
        self.options, self.processor = options, processor
        self.random = random.Random(f"{seed} {processor}")
        self.generator = Generator(self.random, processor)
        self.makers = self.generator.makers()
        if options.only:
            self.makers = {n: m for n, m in self.makers.items() if any(n.startswith(o) for o in options.only)}
        self.accepted, self.failed, self.shown = Counter(), Counter(), Counter()
        self.refused = {}

    def instructions(self, wanted):
        """`wanted` names to lists of (instruction, code), None where the assembler refuses every attempt."""
        made = [None] * len(wanted)
        for _ in range(5):  # other operands for what the assembler refused
            again = [i for i, pairs in enumerate(made) if pairs is None]
            if not again:
                break
            units = [self.makers[wanted[i]]() for i in again]
            for i, pairs in zip(again, assemble.assemble(self.options.llvm_mc, self.processor, units)):
                made[i] = pairs
        return made

    def engine(self, programs):
        """programs: (program, initial state)."""
        return assemble.run_engine(self.options.driver, self.processor, [(unit.link(p), s) for p, s in programs])

    def judge(self, batch, names=None):
        """batch: lists of (instruction, code); names: what each tests, if it is one thing. Reports disagreements."""
        states = [self.generator.state() for _ in batch]
        for program, state in zip(batch, states):
            for item, _ in program:
                execute.prepare(self.random, state, item)
        results = self.engine(list(zip(batch, states)))
        for i, (program, start, (fault, engine)) in enumerate(zip(batch, states, results)):
            if fault and names and "is not emulated" in fault:
                self.refused[names[i]] = fault.strip().splitlines()[0]
                continue
            plain = start.copy()
            unit.run(plain, program, engine.pc, execute.run)
            found = ["fault: " + fault.strip()] if fault else differences(plain, engine)
            if found:
                self.report(program, start, found, names[i] if names else None)

    def report(self, program, start, found, name):
        text = "; ".join(item.text() for item, code in program if code)
        if len(program) > 1 and not any(isinstance(item, unit.Label) for item, _ in program):
            program, start, found = self.first_difference(program, start, found)
        inst = [item for item, code in program if code][-1]
        self.failed[name or inst.name] += 1
        if self.shown[inst.name] >= self.options.show or sum(self.shown.values()) > self.options.show_all:
            return
        self.shown[inst.name] += 1
        print(f"MISMATCH {self.processor}: {inst.text()}\n   {describe_inputs(start, inst)}")
        if len(program) > 1 or text != inst.text():
            print("   in " + text)
        detail = describe_lane(start, inst, found)
        print("\n".join(([detail] if detail else []) + ["   " + line for line in found]))

    def first_difference(self, program, start, found):
        """Cuts the program to the first instruction after which the states differ."""
        prefixes = [program[:n] for n in range(1, len(program) + 1)]
        results = self.engine([(p, start) for p in prefixes])
        plain = start.copy()
        for prefix, (fault, engine) in zip(prefixes, results):
            before = plain.copy()
            unit.run(plain, prefix[-1:], engine.pc + sum(len(code) for _, code in prefix[:-1]), execute.run)
            different = ["fault: " + fault] if fault else differences(plain, engine)
            if different:
                return prefix[-1:], before, different
        return program, start, found

    def run(self):
        names = sorted(self.makers)
        wanted = [n for n in names for _ in range(self.options.count)]
        singles = [(n, pairs) for n, pairs in zip(wanted, self.instructions(wanted)) if pairs]
        for name, _ in singles:
            self.accepted[name] += 1
        for at in range(0, len(singles), 500):
            self.judge([pairs for _, pairs in singles[at:at + 500]], [name for name, _ in singles[at:at + 500]])
        sound = [n for n in names if n not in self.refused and self.accepted[n]]
        length = self.options.length
        made = [pairs for pairs in self.instructions([self.random.choice(sound) for _ in range(
            self.options.programs * length)]) if pairs]
        programs = []
        for i in range(0, len(made), length):
            chosen = one_access_a_space(made[i:i + length])
            if len(programs) % 2:  # every other program has loops and branches around its parts
                chosen = control.structured(self, chosen)
            programs.append([pair for pairs in chosen for pair in pairs])
        for at in range(0, len(programs), 100):
            self.judge(programs[at:at + 100])
        never = [n for n in names if not self.accepted[n] and n not in execute.NOT_ON.get(self.processor, ())]
        print(f"{self.processor}: {len(sound)} mnemonics, {len(singles)} single instructions, {len(programs)} programs "
              f"of {length}; {sum(self.failed.values())} disagreements in {len(self.failed)} mnemonics")
        for name, fault in sorted(self.refused.items()):
            print(f"   refused by the emulator: {name}: {fault}")
        if never:
            print("   never accepted by the assembler: " + " ".join(never))
        if self.failed:
            print("   disagreements: " + " ".join(f"{n}:{c}" for n, c in self.failed.most_common()))
        return not self.failed and not never and not self.refused


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True, help="flydsl-emu-run")
    parser.add_argument("--llvm-mc", required=True)
    parser.add_argument("--processor", action="append")
    parser.add_argument("--count", type=int, default=3, help="runs of each mnemonic")
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--length", type=int, default=12, help="instructions a program")
    parser.add_argument("--seed", default=os.environ.get("FLYDSL_TEST_SEED", "1"))
    parser.add_argument("--only", action="append", help="mnemonics that begin so")
    parser.add_argument("--show", type=int, default=2, help="disagreements printed a mnemonic")
    parser.add_argument("--show-all", type=int, default=60)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    good = [Test(options, p, options.seed).run() for p in options.processor or assemble.PROCESSORS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
