"""Instances of rms_norm, layer_norm and their gradients: each length and alignment has one, on every architecture."""

import unittest

import support  # noqa: F401  (finds the packages)
from describe import layer_norm, layer_norm_backward, norm_backward, rms_norm, rms_norm_backward
from describe.rows import ARCHITECTURES, HELD_ARCHITECTURES, LARGEST_ROW, REALS


OPERATORS = (rms_norm.OPERATOR, layer_norm.OPERATOR)


class Norms(unittest.TestCase):
    def test_every_problem_has_a_kernel(self):
        for operator in OPERATORS:
            for arch in ARCHITECTURES:
                instances = operator.instances(arch)
                for dtype in REALS.values():
                    for quantised in (0, 1):
                        self.check_key([i for i in instances if i.key == (("dtype", dtype), ("quantised", quantised))])

    def check_key(self, of_key):
        for align in (1, 16):
            fitting = [i for i in of_key if i.align_bytes <= align]
            self.assertEqual(max(i.seq_k[1] for i in fitting), LARGEST_ROW)
            self.assertEqual({i.seq_k[0] for i in fitting}, {1})

    def test_shorter_rows_are_served_first(self):
        for operator in OPERATORS:
            instances = operator.instances("gfx950")
            for key in {i.key for i in instances}:
                for align in (1, 16):
                    limits = [i.seq_k[1] for i in sorted(instances, key=lambda i: i.preference)
                              if i.key == key and i.align_bytes == align]
                    self.assertEqual(limits, sorted(limits))

    def test_rows_are_in_lds_or_registers(self):
        for operator in OPERATORS:
            for arch in ARCHITECTURES:
                names = {i.name for i in operator.instances(arch)}
                held = {name for name in names if name.endswith("_held")}
                self.assertEqual(bool(held), arch in HELD_ARCHITECTURES)
                self.assertFalse({name.removesuffix("_held") for name in held} & names)

    def test_no_kernel_for_unknown_architectures(self):
        for operator in OPERATORS:
            self.assertEqual(operator.instances("gfx906"), ())


class Gradients(unittest.TestCase):
    OPERATORS = (rms_norm_backward.OPERATOR, layer_norm_backward.OPERATOR)

    def of_pass(self, operator, arch, dtype, number):
        return [i for i in operator.instances(arch) if i.key == (("dtype", dtype), ("pass", number))]

    def test_every_problem_has_its_kernels(self):
        for operator in self.OPERATORS:
            for arch in ARCHITECTURES:
                self.assertEqual(len(self.of_pass(operator, arch, 0, norm_backward.TOTALS)), 1)
                for dtype in REALS.values():
                    for number in (norm_backward.SUMS, norm_backward.COLUMNS):
                        for align in (1, 16):
                            fitting = [i for i in self.of_pass(operator, arch, dtype, number) if i.align_bytes <= align]
                            self.assertEqual(max(i.seq_k[1] for i in fitting), LARGEST_ROW)

    def test_shorter_rows_are_served_first(self):
        for operator in self.OPERATORS:
            for arch in ARCHITECTURES:
                for dtype in REALS.values():
                    for align in (1, 16):
                        limits = [i.seq_k[1] for i in sorted(self.of_pass(operator, arch, dtype, norm_backward.ROWS), key=lambda i: i.preference)
                                  if i.align_bytes == align]
                        self.assertEqual(limits, sorted(limits))

    def test_the_host_is_told_how_many_columns_a_tile_has(self):
        for operator in self.OPERATORS:
            tables = {table.name: table.rows for table in operator.tables}
            self.assertEqual({dtype for dtype, _ in tables["columns"]}, set(REALS.values()))
            for dtype, columns in tables["columns"]:
                for instance in self.of_pass(operator, "gfx950", dtype, norm_backward.COLUMNS):
                    self.assertEqual(instance.tile[1], columns)


if __name__ == "__main__":
    unittest.main()
