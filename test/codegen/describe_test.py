"""Descriptions: import rule, consistent instances, unique keys; and the manifest made of them."""

import ast
import json
import unittest

import support
from describe.registry import OPERATORS
from generate import layout, main, manifest

ARCH = "gfx950"
STANDARD_LIBRARY = {"dataclasses", "typing"}


class Imports(unittest.TestCase):
    def test_describe_imports_only_itself_and_the_standard_library(self):
        folder = support.CODEGEN / "describe"
        files = sorted(folder.rglob("*.py"))
        self.assertTrue(files)
        for path in files:
            depth = len(path.relative_to(folder).parts)
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [] if 1 <= node.level <= depth else [node.module or "." * node.level]
                else:
                    continue
                for name in names:
                    self.assertIn(name, STANDARD_LIBRARY, f"{path.name} imports {name}")


class Keys(unittest.TestCase):
    def test_fields_do_not_overlap_and_fit_64_bits(self):
        for op in OPERATORS:
            used = 0
            for field in op.key_fields:
                bits = ((1 << field.bits) - 1) << field.first_bit
                self.assertEqual(used & bits, 0, f"{op.name}.{field.name}")
                used |= bits
            self.assertLess(used, 1 << 64)

    def test_key_is_unique_per_functional_choice(self):
        for op in OPERATORS:
            choices = {}
            for instance in op.instances(ARCH):
                choices.setdefault(layout.functional_key(op, instance), set()).add(instance.key)
            self.assertTrue(choices)
            for key, named in choices.items():
                self.assertEqual(len(named), 1, f"{op.name}: key {key:#x} stands for {named}")
            every = {instance.key for instance in op.instances(ARCH)}
            self.assertEqual(len(choices), len(every))

    def test_a_value_too_wide_for_its_field_is_an_error(self):
        op = OPERATORS[0]
        instance = op.instances(ARCH)[0]
        wide = type(instance)(**{**instance.__dict__, "key": (("dtype", 256),)})
        with self.assertRaises(ValueError):
            layout.functional_key(op, wide)

DECODE_INSTANCES = (
    [f"d{dim}_{tile}" for dim in (64, 128, "192x128", 256) for tile in ("m16n32", "m32n32")]
    + [f"d{dim}_m64n64" for dim in (64, 128, "192x128")]
    + ["d128_m128n128", "d256_m64n32", "d576x512_m64n32"]
    + [f"d576x512_shared_{tile}" for tile in ("m16n32", "m32n32", "m64n64")]
    + [f"d{dim}_{stored}_{tile}" for dim in (64, 128) for stored in ("e4m3", "e5m2") for tile in ("m16n32", "m32n32")]
    + ["d256_e4m3_m16n32", "d576x512_e4m3_shared_m16n32", "d576x512_e4m3_shared_m64n64", "reduce_d256", "reduce_d512"]
)


class Manifest(unittest.TestCase):
    def setUp(self):
        self.manifest = json.loads(manifest.manifest(OPERATORS, ARCH, main.library_version()))
        self.kernels = {kernel["name"]: kernel for kernel in self.manifest["kernels"]}

    def test_kernels_are_unique_sorted_and_complete(self):
        names = [kernel["name"] for kernel in self.manifest["kernels"]]
        self.assertEqual(names, sorted(set(names)))
        self.assertEqual(len(names), sum(len(op.instances(ARCH)) for op in OPERATORS))
        expected = {
            f"attention_forward_{dtype}_d{dim}_{mask}_{staging}_m128n64"
            for dtype in ("bf16", "fp16")
            for dim in (64, 128)
            for mask in ("none", "causal", "window")
            for staging in ("direct", "staged")
        }
        expected |= {
            f"attention_forward_{dtype}_d{dims}_{mask}_direct_{tile}"
            for dtype in ("bf16", "fp16")
            for mask in ("none", "causal", "window")
            for tile, classes in (("m128n64", ("32", "96", "160", "192x128")), ("m256n64", ("192", "224", "256")))
            for dims in classes
        }
        expected |= {
            f"attention_forward_{dtype}_d{dims}_{mask}_pipelined_m256n64"
            for dtype in ("bf16", "fp16")
            for dims in ("128", "192x128")
            for mask in ("none", "causal")
        }
        expected |= {
            f"attention_forward_{dtype}_d{dim}_{mask}_alternating_m128n{keys}"
            for dtype in ("bf16", "fp16")
            for dim, keys in ((32, 64), (64, 64), (96, 32))
            for mask in ("none", "causal")
        }
        expected |= {
            f"attention_forward_e4m3_{dtype}_d{dim}_{kind}"
            for dtype in ("bf16", "fp16")
            for dim in (64, 128)
            for kind in ("none_direct_m128n64", "causal_direct_m128n64", "window_direct_m128n64",
                         "none_pipelined_m256n64", "causal_pipelined_m256n64")
        }
        expected |= {
            f"attention_forward_{dtype}_d{dims}_features_m128n64"
            for dtype in ("bf16", "fp16")
            for dims in ("32", "64", "96", "128")
        }
        expected |= {
            f"attention_forward_{dtype}_d{dims}_general_m128n64"
            for dtype in ("bf16", "fp16")
            for dims in ("32", "64", "96", "128", "160", "192x128", "192", "224", "256", "512", "576x512")
        }
        self.assertEqual({name for name in names if name.startswith("attention_forward_")}, expected)
        expected = {
            f"attention_decode_{dtype}_{instance}"
            for dtype in ("bf16", "fp16")
            for instance in DECODE_INSTANCES
        }
        self.assertEqual({name for name in names if name.startswith("attention_decode_")}, expected)
        expected = {
            f"attention_backward_{name}"
            for name in (*(f"{dtype}_{name}" for dtype in ("bf16", "fp16") for name in ("prepare", "convert", "prepare_rows", "convert_rows")), "sinks")
        }
        expected |= {
            f"attention_backward_{dtype}_d{dims}_{name}"
            for dtype in ("bf16", "fp16")
            for dims in ("32", "64", "96", "128", "160", "192x128", "192", "224", "256")
            for name in (
                "keys_general_m64n128",
                "queries_general_m128n64",
                "bias_general_m64n128",
                "keys_plain_m64n128",
                "queries_plain_m128n64",
            )
        }
        expected |= {
            f"attention_backward_{dtype}_d{dims}_{name}"
            for dtype in ("bf16", "fp16")
            for dims in ("512", "576x512")
            for name in ("keys_general_m64n32", "queries_general_m32n64", "bias_general_m64n32")
        }
        expected |= {
            f"attention_backward_{dtype}_d{head_dim}_{mask}_fused_m{rows}n256"
            for dtype in ("bf16", "fp16")
            for head_dim, rows in ((64, 64), (128, 32))
            for mask in ("none", "causal")
        }
        self.assertEqual({name for name in names if name.startswith("attention_backward_")}, expected)
        objects = {kernel["object"] for kernel in self.kernels.values()}
        self.assertEqual(len(objects), len(names))

    def test_selection_covers_each_kernel_once_under_its_own_key(self):
        listed = []
        keys = set()
        for row in self.manifest["selection"]:
            self.assertNotIn((row["op"], row["functional_key"]), keys)
            keys.add((row["op"], row["functional_key"]))
            for candidate in row["candidates"]:
                kernel = self.kernels[candidate["kernel"]]
                self.assertEqual(kernel["functional_key"], row["functional_key"])
                self.assertEqual(kernel["op"], row["op"])
                listed.append(candidate["kernel"])
        self.assertEqual(sorted(listed), sorted(self.kernels))

    def test_candidates_that_take_more_alignments_come_later_and_the_general_one_takes_all(self):
        (op,) = [op for op in OPERATORS if op.name == "attention_forward"]
        general = {i.name for i in op.instances(ARCH)
                   if dict(i.key).get("general") and not dict(i.key).get("padded")}
        for row in self.manifest["selection"]:
            if row["op"] == "attention_forward":
                aligns = [candidate["align_bytes"] for candidate in row["candidates"]]
                self.assertEqual(aligns, sorted(aligns, reverse=True))
                if row["candidates"][0]["kernel"] in general:
                    self.assertEqual(aligns, [1])

    def test_every_head_dim_class_has_its_general_instance(self):
        (op,) = [op for op in OPERATORS if op.name == "attention_forward"]
        (classes,) = [table.rows for table in op.tables if table.name == "head_dim_classes"]
        general = {(dict(i.key)["head_dim_qk"], dict(i.key)["head_dim_v"])
                   for i in op.instances(ARCH)
                   if dict(i.key).get("general") and not dict(i.key).get("padded")}
        self.assertEqual(set(classes), general)
        for index, (qk, v) in enumerate(classes):  # none is hidden behind an earlier one
            self.assertFalse([c for c in classes[:index] if qk <= c[0] and v <= c[1]])

    def test_abi_id_and_version_match_the_sources(self):
        self.assertEqual(self.manifest["abi_id"], layout.hex64(layout.abi_id(OPERATORS)))
        self.assertEqual(self.manifest["library_version"], 100)


if __name__ == "__main__":
    unittest.main()
