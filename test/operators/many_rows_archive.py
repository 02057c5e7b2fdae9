#!/usr/bin/env python3
"""An archive of attention_forward's instances for problems with many rows alone, made to take problems of any size.

Whoever verifies with it knows that these instances, and no others, computed the results.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

OPERATOR = "attention_forward"


def main():
    parser = argparse.ArgumentParser()
    for name in ("pack", "source", "generated", "objects", "arch", "out"):
        parser.add_argument(f"--{name}", required=True)
    a = parser.parse_args()
    sys.path.insert(0, str(Path(a.source) / "codegen"))
    from describe.attention_forward.keys import KEY_FIELDS, LENGTHS  # pylint: disable=import-outside-toplevel

    (bit,) = (1 << field.first_bit for field in KEY_FIELDS if field.name == "many_rows")
    manifest = json.loads((Path(a.generated) / a.arch / "manifest.json").read_text())

    def of_many_rows(row):
        return row["op"] == OPERATOR and int(row["functional_key"], 16) & bit

    for part in ("kernels", "selection"):
        manifest[part] = [row for row in manifest[part] if of_many_rows(row)]
        for row in manifest[part]:
            row["functional_key"] = f"0x{int(row['functional_key'], 16) & ~bit:016x}"
    for row in manifest["selection"]:
        for candidate in row["candidates"]:
            candidate["seq_q"] = list(LENGTHS)
    manifest["tuning"] = []  # its rows name kernels that are not here
    out = Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    manifest_path = out / "manifest.json"
    manifest_path.write_text(json.dumps(manifest))
    subprocess.run([a.pack, "--manifest", str(manifest_path), "--objects", a.objects,
                    "--out", str(out / f"flydsl_aot.{a.arch}.fda")], check=True)


if __name__ == "__main__":
    main()
