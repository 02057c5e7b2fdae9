"""Reads a code object's metadata back into <object>.json; fails on register spills or scratch.

usage: python3 codegen/generate/inspect_object.py --readelf llvm-readelf-22 kernel.co
The fields are those of the LLVM AMDGPU User Guide, "Code Object V5 Metadata".
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

# Name in our JSON -> key of the kernel's metadata map.
_NUMBERS = {
    "kernarg_bytes": ".kernarg_segment_size",
    "lds_static_bytes": ".group_segment_fixed_size",
    "scratch_bytes": ".private_segment_fixed_size",
    "vgpr_count": ".vgpr_count",  # architectural and accumulation registers together
    "sgpr_count": ".sgpr_count",
    "wave_size": ".wavefront_size",
    "vgpr_spill_count": ".vgpr_spill_count",
    "sgpr_spill_count": ".sgpr_spill_count",
    "max_flat_workgroup_size": ".max_flat_workgroup_size",
}
_MUST_BE_ZERO = ("vgpr_spill_count", "sgpr_spill_count", "scratch_bytes")


def _only(pattern, text, what):
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"expected one {what} in the metadata, found {len(found)}")
    return found[0]


def parse(notes):
    """The metadata of a code object with one kernel, from `llvm-readelf --notes`."""
    result = {
        "symbol": _only(r"^\s+(?:- )?\.symbol:\s+(\S+)\.kd$", notes, ".symbol"),
        "target_id": _only(r"^\s*amdhsa\.target:\s+'?amdgcn-amd-amdhsa--([\w:+-]+)", notes, "target"),
    }
    for name, key in _NUMBERS.items():
        pattern = rf"^\s+(?:- )?{re.escape(key)}:\s+(\d+)$"
        result[name] = int(_only(pattern, notes, key))
    return result


def problems(metadata):
    """Why the object may not ship; empty when it may."""
    return [f"{name} is {metadata[name]}, must be 0" for name in _MUST_BE_ZERO if metadata[name]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readelf", required=True)
    parser.add_argument("object", type=Path)
    arguments = parser.parse_args()
    notes = subprocess.run(
        [arguments.readelf, "--notes", str(arguments.object)], check=True, capture_output=True, text=True
    ).stdout
    try:
        metadata = parse(notes)
        bad = problems(metadata)
    except ValueError as error:
        bad = [str(error)]
    if bad:
        # Ninja would take an object that exists as built.
        arguments.object.unlink()
        sys.exit(f"{arguments.object.name}: " + "; ".join(bad))
    Path(f"{arguments.object}.json").write_text(json.dumps(metadata, indent=1) + "\n")


if __name__ == "__main__":
    main()
