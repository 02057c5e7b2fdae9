#!/usr/bin/env python3
"""Which executed instructions nothing tests: neither the plain implementation nor a vector in ../isa.

Executed: what `flydsl-emu-coverage` lists as executed for a processor. Tested: the plain implementation makes it, or a test in
../isa spells its name. The rest must be exactly the patterns of uncovered.txt (`pattern reason`): a new instruction without a test
fails here, and so does a line without a use.
"""

import argparse
import fnmatch
import random
import re
import subprocess
import sys
from pathlib import Path

import assemble
import execute  # noqa: F401  (fills the tables)
from generate import Generator

HERE = Path(__file__).parent


def executed(coverage, processor):
    table = subprocess.run([coverage, processor], capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    return {cells[1] for cells in rows if len(cells) > 4 and cells[4] == "executed"}


def spelled():
    """Mnemonics in the sources of the vector tests, without their encoding."""
    words = set()
    for path in (HERE.parent / "isa").glob("*.cc"):
        words |= set(re.findall(r"[a-z]\w+", path.read_text().replace("\\n", " ")))
    return {re.sub(r"_(e32|e64|sdwa|dpp)$", "", word) for word in words}


def justified():
    lines = [line.split(None, 1) for line in (HERE / "uncovered.txt").read_text().splitlines() if line and line[0] != "#"]
    return {pattern: reason for pattern, reason in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coverage", required=True, help="flydsl-emu-coverage")
    options = parser.parse_args()
    vectors, reasons, used, good = spelled(), justified(), set(), True
    for processor in assemble.PROCESSORS:
        known = executed(options.coverage, processor)
        if len(known) < 1000:
            print(f"{processor}: only {len(known)} executed instructions were listed")
            good = False
        plain = set(Generator(random.Random(1), processor).makers()) & known
        rest = sorted(known - plain - vectors)
        print(f"{processor}: {len(known)} executed, {len(plain)} in plain, {len(known & vectors)} in vectors, neither: "
              + (" ".join(rest) or "none"))
        for name in rest:
            matches = [pattern for pattern in reasons if fnmatch.fnmatch(name, pattern)]
            used |= set(matches)
            if not matches:
                print(f"{processor}: {name} is executed, but nothing tests it")
                good = False
    for pattern in sorted(set(reasons) - used):
        print(f"uncovered.txt: nothing is left for `{pattern}`")
        good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
