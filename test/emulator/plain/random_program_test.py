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
import execute
import memory
from generate import Generator
from machine import LANES

NAMES = {106: "vcc_lo", 107: "vcc_hi", 124: "m0", 126: "exec_lo", 127: "exec_hi"}


def differences(plain, engine, limit=6):
    """Texts of the places where the two states differ."""
    found = []
    if plain.scc != engine.scc:
        found.append(f"scc: plain {plain.scc}, engine {engine.scc}")
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
    for name in ("lds", "memory"):
        x, y = getattr(plain, name), getattr(engine, name)
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


def one_access_a_space(program):
    """Drops all but the first LDS and the first global access: the address registers hold one set of addresses."""
    seen, kept = set(), []
    for pair in program:
        space = memory.TABLE[pair[0].name].address if pair[0].name in memory.TABLE else None
        if space is None or space not in seen:
            kept.append(pair)
        seen.add(space)
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
        """`wanted` names to instructions with their code; those the assembler refuses are dropped."""
        made = [self.makers[name]() for name in wanted]
        codes = assemble.encode(self.options.llvm_mc, self.processor, [i.text() for i in made])
        for _ in range(4):  # other operands for what the assembler refused
            again = [i for i, code in enumerate(codes) if code is None]
            for i in again:
                made[i] = self.makers[wanted[i]]()
            texts = [made[i].text() for i in again]
            for i, code in zip(again, assemble.encode(self.options.llvm_mc, self.processor, texts) if again else []):
                codes[i] = code
        return list(zip(made, codes))

    def judge(self, batch):
        """batch: lists of (instruction, code). Runs both sides, reports disagreements."""
        states = [self.generator.state() for _ in batch]
        for program, state in zip(batch, states):
            for inst, _ in program:
                execute.prepare(self.random, state, inst)
        results = assemble.run_engine(self.options.driver, self.processor,
                                      [(b"".join(c for _, c in p), s) for p, s in zip(batch, states)])
        for program, start, (fault, engine) in zip(batch, states, results):
            if fault and len(program) == 1 and "is not emulated" in fault:
                self.refused[program[0][0].name] = (program[0][0].text(), fault.strip().splitlines()[0])
                continue
            plain = start.copy()
            for inst, _ in program:
                execute.run(plain, inst)
            found = ["fault: " + fault.strip()] if fault else differences(plain, engine)
            if found:
                self.report(program, start, found)

    def report(self, program, start, found):
        if len(program) > 1:
            program, start, found = self.first_difference(program, start, found)
        inst = program[-1][0]
        self.failed[inst.name] += 1
        if self.shown[inst.name] >= self.options.show or sum(self.shown.values()) > self.options.show_all:
            return
        self.shown[inst.name] += 1
        print(f"MISMATCH {self.processor}: {inst.text()}\n   {describe_inputs(start, inst)}")
        detail = describe_lane(start, inst, found)
        print("\n".join(([detail] if detail else []) + ["   " + line for line in found]))

    def first_difference(self, program, start, found):
        """Cuts the program to the first instruction after which the states differ."""
        prefixes = [program[:n] for n in range(1, len(program) + 1)]
        results = assemble.run_engine(self.options.driver, self.processor,
                                      [(b"".join(c for _, c in p), start) for p in prefixes])
        plain = start.copy()
        for prefix, (fault, engine) in zip(prefixes, results):
            before = plain.copy()
            execute.run(plain, prefix[-1][0])
            different = ["fault: " + fault] if fault else differences(plain, engine)
            if different:
                return prefix[-1:], before, different
        return program, start, found

    def run(self):
        names = sorted(self.makers)
        made = self.instructions([n for n in names for _ in range(self.options.count)])
        singles = [[pair] for pair in made if pair[1] is not None]
        for pair in made:
            self.accepted[pair[0].name] += pair[1] is not None
        for at in range(0, len(singles), 500):
            self.judge(singles[at:at + 500])
        sound = [n for n in names if n not in self.refused and self.accepted[n]]
        length = self.options.length
        made = [p for p in self.instructions([self.random.choice(sound)
                                              for _ in range(self.options.programs * length)]) if p[1] is not None]
        programs = [one_access_a_space(made[i:i + length]) for i in range(0, len(made), length)]
        for at in range(0, len(programs), 100):
            self.judge(programs[at:at + 100])
        never = [n for n in names if not self.accepted[n] and n not in execute.NOT_ON.get(self.processor, ())]
        print(f"{self.processor}: {len(sound)} mnemonics, {len(singles)} single instructions, {len(programs)} programs "
              f"of {length}; {sum(self.failed.values())} disagreements in {len(self.failed)} mnemonics")
        for name, (text, fault) in sorted(self.refused.items()):
            print(f"   refused by the emulator: {text}: {fault}")
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
