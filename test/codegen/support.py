"""Paths, and the generator run as the build runs it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODEGEN = ROOT / "codegen"
MAIN = CODEGEN / "generate/main.py"
if str(CODEGEN) not in sys.path:
    sys.path.insert(0, str(CODEGEN))


def generate(out, *archs):
    options = [option for arch in archs for option in ("--arch", arch)]
    return subprocess.run(
        [sys.executable, "-B", str(MAIN), *options, "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )


def tree(folder):
    """{relative path: bytes} of all files below a folder."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }
