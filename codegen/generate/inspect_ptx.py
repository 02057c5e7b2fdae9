"""Brings PTX into the form that an archive keeps, and writes <object>.json as inspect_object.py does for code objects.

usage: python3 codegen/generate/inspect_ptx.py kernel.ptx kernel.co
The kernel's text is without comments, begins with .version and ends with a zero, as the driver's loader wants it. Registers are the driver's choice; a
kernel that keeps values in local memory by itself (.local) is refused.
"""

import json
import re
import sys
from pathlib import Path


def _only(pattern, text, what):
    found = re.findall(pattern, text)
    if len(found) != 1:
        raise ValueError(f"expected one {what}, found {len(found)}")
    return found[0]


def without_comments(text):
    lines = (re.sub(r"//.*", "", line).rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def parse(text):
    """The metadata of PTX with one kernel."""
    symbol = _only(r"\.entry (\w+)\(", text, ".entry")
    shared = re.findall(r"\.shared \.align \d+ \.b8 [\w$]+\[(\d+)\]", text)
    return {
        "symbol": symbol,
        "target_id": _only(r"\.target (\w+)", text, ".target"),
        "kernarg_bytes": int(_only(r"\.param \.align \d+ \.b8 \w+_param_0\[(\d+)\]", text, "parameter")),
        "lds_static_bytes": sum(map(int, shared)),
        "scratch_bytes": 0,
        "vgpr_count": 0,
        "sgpr_count": 0,
        "wave_size": 32,
        "vgpr_spill_count": 0,
        "sgpr_spill_count": 0,
        "max_flat_workgroup_size": int(_only(r"\.maxntid (\d+)", text, ".maxntid")),
    }


def main():
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    text = without_comments(source.read_text())
    if not text.startswith(".version"):
        sys.exit(f"{source.name}: does not begin with .version")
    if ".local" in text:
        sys.exit(f"{source.name}: keeps values in local memory")
    try:
        metadata = parse(text)
    except ValueError as error:
        sys.exit(f"{source.name}: {error}")
    output.write_bytes(text.encode() + b"\0")
    Path(f"{output}.json").write_text(json.dumps(metadata, indent=1) + "\n")


if __name__ == "__main__":
    main()
