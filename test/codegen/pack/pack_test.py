"""flydsl-aot-pack: the same bytes for the same input, and one clear line for each kind of bad input.

Usage: pack_test.py PATH_OF_FLYDSL_AOT_PACK
"""

import copy
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACK = None

KERNEL = {
    "name": "op_a",
    "op": "op",
    "backend": "native",
    "symbol": "op_a_symbol",
    "grid_rule": "linear_tiles",
    "block": [256, 1, 1],
    "tile": [128, 64, 0],
    "lds_dynamic_bytes": 0,
    "kernarg_layout_id": "0x0123456789abcdef",
    "functional_key": "0x0000000000000005",
    "object": "op/a.co",
}
METADATA = {
    "symbol": "op_a_symbol",
    "target_id": "gfx950",
    "kernarg_bytes": 208,
    "lds_static_bytes": 4096,
    "scratch_bytes": 0,
    "vgpr_count": 128,
    "sgpr_count": 32,
    "wave_size": 64,
    "vgpr_spill_count": 0,
    "sgpr_spill_count": 0,
    "max_flat_workgroup_size": 256,
}
MANIFEST = {
    "arch": "gfx950",
    "abi_id": "0x1122334455667788",
    "library_version": 100,
    "executed": True,
    "kernels": [KERNEL],
    "selection": [
        {
            "op": "op",
            "functional_key": "0x0000000000000005",
            "candidates": [{"kernel": "op_a", "align_bytes": 16, "seq_q": [0, 10], "seq_k": [0, 10]}],
        }
    ],
    "tuning": [
        {
            "op": "op",
            "key": "0x0000000000000007",
            "rows": [{"kernel": "op_a", "rows": 5, "keys": 6, "parallel": 2, "alignment": 16, "compute_units": 256, "figure_ns": 9,
                      "origin": "model"}],
        }
    ],
}
CODE_OBJECT = b"\x7fELF" + bytes(range(256)) * 8


def set_at(tree, path, value):
    for key in path[:-1]:
        tree = tree[key]
    if value is None:
        del tree[path[-1]]
    else:
        tree[path[-1]] = value


class Pack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)

    def pack(self, manifest=None, metadata=None, code_object=CODE_OBJECT, out="a.fda"):
        (self.root / "objects/op").mkdir(parents=True, exist_ok=True)
        (self.root / "manifest.json").write_text(json.dumps(MANIFEST if manifest is None else manifest))
        (self.root / "objects/op/a.co.json").write_text(json.dumps(METADATA if metadata is None else metadata))
        (self.root / "objects/op/a.co").write_bytes(code_object)
        return subprocess.run(
            [PACK, "--manifest", self.root / "manifest.json", "--objects", self.root / "objects",
             "--out", self.root / out],
            capture_output=True, text=True, check=False,
        )

    def refused(self, run, *parts):
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for part in parts:
            self.assertIn(part, run.stderr)
        self.assertEqual([p.name for p in self.root.glob("a.fda*")], [])

    def test_same_bytes(self):
        self.assertEqual(self.pack().returncode, 0)
        self.assertEqual(self.pack(out="b.fda").returncode, 0)
        first = (self.root / "a.fda").read_bytes()
        self.assertEqual(first, (self.root / "b.fda").read_bytes())
        self.assertEqual(first[:8], b"FLYDSLFA")

    def test_bad_manifest(self):
        kernel, selection, tuning = ["kernels", 0], ["selection", 0], ["tuning", 0]
        rows = [
            (["arch"], None, "'arch' is missing"),
            (["arch"], "compute_90", "'compute_90'"),
            (["abi_id"], "1122", "'abi_id' is not a hexadecimal number"),
            (["abi_id"], "0x12345678901234567", "'abi_id'"),
            (["abi_id"], "0xzz", "'abi_id'"),
            (["kernels"], {}, "'kernels' is not an array"),
            (["kernels", 0], 5, "kernel 0"),
            (kernel + ["symbol"], None, "'symbol' is missing"),
            (kernel + ["symbol"], 7, "'symbol' is not a string"),
            (kernel + ["block"], [256, 1], "'block' is not an array of 3 numbers"),
            (kernel + ["block"], [256, 1, -1], "'block'"),
            (kernel + ["block"], [512, 1, 1], "max_flat_workgroup_size"),
            (kernel + ["tile"], [0, 0, 0], "tile of 0 rows"),
            (kernel + ["grid_rule"], "spiral", "'spiral'; known: linear_tiles, persistent"),
            (kernel + ["lds_dynamic_bytes"], 2**32, "'lds_dynamic_bytes'"),
            (kernel + ["object"], "op/none.co", "cannot be opened"),
            (kernel + ["functional_key"], "0x6", "another functional key"),
            (selection + ["candidates", 0, "kernel"], "nobody", "'nobody' does not exist"),
            (selection + ["candidates", 0, "align_bytes"], 12, "alignment"),
            (selection + ["candidates", 0, "seq_q"], [5, 1], "empty range"),
            (selection + ["candidates"], [], "1 to 64 candidates"),
            (["tuning"], None, "'tuning' is missing"),
            (tuning + ["key"], "7", "'key' is not a hexadecimal number"),
            (tuning + ["rows"], 3, "'rows' is not an array"),
            (tuning + ["rows", 0, "kernel"], "nobody", "'nobody'"),
            (tuning + ["rows", 0, "figure_ns"], -1, "tuning 0 row 0"),
            (tuning + ["rows", 0, "alignment"], 3, "alignment"),
        ]
        for path, value, message in rows:
            with self.subTest(path=path, value=value):
                manifest = copy.deepcopy(MANIFEST)
                set_at(manifest, path, value)
                self.refused(self.pack(manifest), message)

    def test_bad_metadata(self):
        rows = [
            ("symbol", "other", "'symbol' is 'other'"),
            ("target_id", "gfx942", "'gfx942'"),
            ("target_id", None, "'target_id' is missing"),
            ("max_flat_workgroup_size", 128, "max_flat_workgroup_size"),
            ("vgpr_spill_count", 3, "'vgpr_spill_count' is 3"),
            ("sgpr_spill_count", 1, "'sgpr_spill_count' is 1"),
            ("wave_size", 16, "wave size"),
            ("vgpr_count", -1, "'vgpr_count'"),
        ]
        for field, value, message in rows:
            with self.subTest(field=field, value=value):
                metadata = copy.deepcopy(METADATA)
                set_at(metadata, [field], value)
                self.refused(self.pack(metadata=metadata), message)

    def test_not_a_code_object(self):
        self.refused(self.pack(code_object=b""), "a.co", "not an ELF")
        self.refused(self.pack(code_object=b"text" * 100), "not an ELF")

    def test_not_json(self):
        self.pack()
        (self.root / "a.fda").unlink()
        (self.root / "manifest.json").write_text("{")
        run = subprocess.run(
            [PACK, "--manifest", self.root / "manifest.json", "--objects", self.root, "--out", self.root / "a.fda"],
            capture_output=True, text=True, check=False,
        )
        self.refused(run, "is not JSON")


if __name__ == "__main__":
    PACK = sys.argv.pop(1)
    unittest.main()
