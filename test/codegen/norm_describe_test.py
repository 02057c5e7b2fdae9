"""Instances of rms_norm and layer_norm: each length and alignment has one, on every architecture."""

import unittest

import support  # noqa: F401  (finds the packages)
from describe import layer_norm, rms_norm
from describe.rows import ARCHITECTURES, LARGEST_ROW, REALS


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

    def test_no_kernel_for_unknown_architectures(self):
        for operator in OPERATORS:
            self.assertEqual(operator.instances("gfx906"), ())


if __name__ == "__main__":
    unittest.main()
