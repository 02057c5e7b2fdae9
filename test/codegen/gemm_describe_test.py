"""Instances of products. Of gemm each operand type has one that takes everything, and fast ones have tiles that their keys name."""

import unittest

import support  # noqa: F401  (finds the packages)
from describe import gemm, grouped_gemm, mx_quantise, scaled_gemm
from describe.gemm.keys import DTYPES, LAYOUTS, TILES

FIELDS = [field.name for field in gemm.OPERATOR.key_fields]


def fields_of(instance):
    return {name: dict(instance.key).get(name, 0) for name in FIELDS}


class Gemm(unittest.TestCase):
    def setUp(self):
        self.instances = gemm.OPERATOR.instances("gfx950")

    def test_each_operand_type_has_an_instance_without_conditions(self):
        for dtype in ("bf16", "fp16", "fp32", "e4m3"):
            general = [i for i in self.instances if fields_of(i) == {
                "a_dtype": DTYPES[dtype], "b_dtype": DTYPES[dtype], "tile": 0, "layout": 0, "pass": 0}]
            self.assertEqual(len(general), 1, dtype)
            self.assertEqual(general[0].align_bytes, 1)
            self.assertEqual((general[0].seq_q, general[0].seq_k), ((0, 1 << 30), (0, 1 << 30)))

    def test_one_of_each_other_pass(self):
        self.assertEqual([i.name for i in self.instances if fields_of(i)["pass"]], ["gemm_second_pass", "gemm_sums"])

    def test_tiles_are_those_of_the_keys(self):
        by_number = {number: (rows, columns) for number, rows, columns in TILES.values()}
        self.assertEqual(len(by_number), len(TILES))
        for instance in self.instances:
            if not fields_of(instance)["pass"]:
                self.assertEqual(instance.tile[:2], by_number[fields_of(instance)["tile"]], instance.name)

    def test_the_library_knows_every_fast_key(self):
        rows = next(table.rows for table in gemm.OPERATOR.tables if table.name == "fast_tiles")
        fast = {tuple(fields_of(i)[name] for name in ("a_dtype", "b_dtype", "layout", "tile"))
                for i in self.instances if fields_of(i)["tile"]}
        self.assertEqual({row[:4] for row in rows}, fast)
        self.assertTrue(all(row[2] in LAYOUTS.values() for row in rows))

    def test_general_kernels_of_older_architectures(self):
        for arch in ("gfx90a", "gfx942"):
            names = {instance.name for instance in gemm.OPERATOR.instances(arch)}
            self.assertLess(names, {instance.name for instance in self.instances})
            self.assertLessEqual({i.name for i in self.instances if not fields_of(i)["tile"]}, names)
            self.assertFalse(any(i.hides_accumulators for i in gemm.OPERATOR.instances(arch)))
        self.assertEqual(gemm.OPERATOR.instances("gfx906"), ())

    def test_what_fits_any_problem_is_compiled(self):
        for arch in ("gfx90a", "gfx942", "gfx950"):
            general = tuple(i for i in gemm.OPERATOR.instances(arch) if not fields_of(i)["tile"])
            self.assertEqual(gemm.OPERATOR.compiled(arch), general)
        self.assertEqual(gemm.OPERATOR.compiled("gfx1201"), gemm.OPERATOR.instances("gfx1201"))
        self.assertEqual(gemm.OPERATOR.compiled("gfx906"), ())


class OtherProducts(unittest.TestCase):
    def test_what_fits_any_problem_is_compiled(self):
        for operator in (grouped_gemm.OPERATOR, scaled_gemm.OPERATOR, mx_quantise.OPERATOR):
            for arch in ("gfx90a", "gfx942", "gfx950"):
                # Without a tile of its own in the key; the second pass is of parts, which only fast instances take.
                general = {i for i in operator.instances(arch) if not dict(i.key).keys() & {"tile", "second_pass"}}
                self.assertTrue(general)
                self.assertEqual(set(operator.compiled(arch)), general, (operator.name, arch))
                self.assertEqual({i.align_bytes for i in general}, {1})
            self.assertEqual(operator.compiled("gfx1201"), ())


if __name__ == "__main__":
    unittest.main()
