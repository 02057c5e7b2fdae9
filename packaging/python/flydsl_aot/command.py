"""The `flydsl-aot` of a wheel: the program beside the library, in place of this process."""

from __future__ import annotations

import os
import sys

from .native import prefixes


def main() -> None:
    for prefix in prefixes():
        program = prefix / "bin" / "flydsl-aot"
        if program.exists():
            os.execv(program, [str(program), *sys.argv[1:]])
    sys.exit(f"flydsl-aot: no bin/flydsl-aot in {' or '.join(map(str, prefixes()))}")
