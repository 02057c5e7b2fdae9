"""Where the tests run: in the virtual environment that fetch.sh made, unless they are to be skipped."""
import os
import pathlib
import sys

SKIPPED = 77


def enter(objects):
    """Runs this program again with the Python of `objects`/venv, if it does not run there already."""
    if os.environ.get("FLYDSL_AOT_SKIP_PEERS") == "1":
        print("skipped: FLYDSL_AOT_SKIP_PEERS=1")
        sys.exit(SKIPPED)
    venv = pathlib.Path(objects, "venv").absolute()
    if pathlib.Path(sys.prefix) == venv:
        return
    python = venv / "bin/python"
    if not python.exists():
        sys.exit(f"no {python}; run test/emulator/peers/fetch.sh {objects} aiter|triton|triton_attention|flydsl first")
    os.execv(python, [str(python), *sys.argv])
