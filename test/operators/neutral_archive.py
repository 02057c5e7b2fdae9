"""Builds named kernels of the operators without instructions of one architecture for another one than the build's.

usage: neutral_archive.py --arch gfx942 --only REGEX --cxx clang++-22 --readelf llvm-readelf-22 --pack flydsl-aot-pack
           --source SOURCE_DIR --out FOLDER [--portable] -- FLAGS

Each must compile without spills. The archive in FOLDER has them; what it can run on (the emulator knows gfx9) is up to the tests.
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
    for name in ("arch", "only", "cxx", "readelf", "pack", "source", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--portable", action="store_true", help="portable instances in place of the architecture's own")
    parser.add_argument("flags", nargs="*", help="device flags of the build, after --")
    a = parser.parse_args()
    out = Path(a.out)
    shutil.rmtree(out, ignore_errors=True)
    generated = out / "generated"
    subprocess.run([sys.executable, "-B", f"{a.source}/codegen/generate/main.py", "--arch", a.arch, "--out", str(generated),
                    *(["--portable"] if a.portable else [])], check=True)
    manifest = json.loads((generated / a.arch / "manifest.json").read_text())
    manifest["kernels"] = [kernel for kernel in manifest["kernels"] if re.search(a.only, kernel["name"])]
    names = {kernel["name"] for kernel in manifest["kernels"]}
    for row in manifest["selection"]:
        row["candidates"] = [one for one in row["candidates"] if one["kernel"] in names]
    manifest["selection"] = [row for row in manifest["selection"] if row["candidates"]]
    manifest["tuning"] = []  # its rows name kernels that are not here
    assert names, f"no kernel matches {a.only}"

    def build(kernel):
        target = out / kernel["object"]
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([a.cxx, *a.flags, f"--offload-arch={a.arch}", f"-I{a.source}/kernels", f"-I{generated}/include",
                        str((generated / a.arch / kernel["object"]).with_suffix(".hip")), "-o", str(target)], check=True)
        subprocess.run([sys.executable, "-B", f"{a.source}/codegen/generate/inspect_object.py", "--readelf", a.readelf, str(target)], check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, manifest["kernels"]))
    manifest_path = out / "manifest.json"
    manifest_path.write_text(json.dumps(manifest))
    subprocess.run([a.pack, "--manifest", str(manifest_path), "--objects", str(out),
                    "--out", str(out / f"flydsl_aot.{a.arch}.fda")], check=True)
    print(f"{len(names)} kernels for {a.arch}")


if __name__ == "__main__":
    main()
