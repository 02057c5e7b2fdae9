"""Builds an archive whose kernels are compiled at another optimisation level than the shipped ones.

usage: unoptimised_archive.py --level 0 --only REGEX --cxx clang++-22 --readelf llvm-readelf-22 --pack flydsl-aot-pack
           --source SOURCE_DIR --generated GENERATED_DIR --arch gfx950 --out FOLDER

The same sources at -O0 to -O2 use other instructions and scratch: results must be right all the same, on kernels and emulator alike.
`--only` names the kernels that the tests run. Such objects are never shipped: the build's own gate (codegen/generate/inspect_object.py)
refuses scratch and spills.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    for name in ("level", "only", "cxx", "readelf", "pack", "source", "generated", "arch", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("flags", nargs="*", help="device flags of the build, after --")
    a = parser.parse_args()
    sys.path.insert(0, str(Path(a.source) / "codegen" / "generate"))
    import inspect_object  # pylint: disable=import-outside-toplevel

    generated, out = Path(a.generated), Path(a.out)
    manifest = json.loads((generated / a.arch / "manifest.json").read_text())
    # Schedules by hand rely on the optimiser: what is in flight must stay where it is.
    # Those for features keep scalars in the lanes of a register: -O0 code cannot take them from there.
    left_out = ["_pipelined_", "_alternating_"] + (["_features_"] if a.level == "0" else [])

    def taken(name):
        return re.search(a.only, name) and not any(part in name for part in left_out)

    manifest["kernels"] = [kernel for kernel in manifest["kernels"] if taken(kernel["name"])]
    for row in manifest["selection"]:
        row["candidates"] = [one for one in row["candidates"] if taken(one["kernel"])]
    manifest["selection"] = [row for row in manifest["selection"] if row["candidates"]]
    manifest["tuning"] = []  # its rows name kernels that are not here
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    manifest_path = out / "manifest.json"
    manifest_path.write_text(json.dumps(manifest))

    def build(kernel):
        target = out / kernel["object"]
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = [flag for flag in a.flags if not flag.startswith("-O") and flag != "-Werror"] + [f"-O{a.level}"]
        subprocess.run(
            [a.cxx, *flags, f"--offload-arch={a.arch}", f"-I{a.source}/kernels", f"-I{generated}/include",
             str((generated / a.arch / kernel["object"]).with_suffix(".hip")), "-o", str(target)], check=True)
        notes = subprocess.run([a.readelf, "--notes", str(target)], check=True, capture_output=True, text=True).stdout
        # The packer refuses spills too; the runtime does not care.
        metadata = inspect_object.parse(notes) | {"vgpr_spill_count": 0, "sgpr_spill_count": 0}
        if "hidden_" in notes:  # -O0 keeps the 256 bytes of implicit arguments, which the HIP runtime fills in
            metadata["kernarg_bytes"] -= 256
        Path(f"{target}.json").write_text(json.dumps(metadata))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, manifest["kernels"]))
    subprocess.run([a.pack, "--manifest", str(manifest_path), "--objects", str(out),
                    "--out", str(out / f"flydsl_aot.{a.arch}.fda")], check=True)


if __name__ == "__main__":
    main()
