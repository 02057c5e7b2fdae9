"""The gate on code-object metadata."""

import unittest

import support  # noqa: F401  (puts codegen/ on the path)
from generate.inspect_object import parse, problems

NOTES = """\
    AMDGPU Metadata:
        ---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .offset:         0
        .size:           208
        .value_kind:     by_value
    .group_segment_fixed_size: 34048
    .kernarg_segment_size: 208
    .max_flat_workgroup_size: 256
    .name:           kernel_a
    .private_segment_fixed_size: {scratch}
    .sgpr_count:     74
    .sgpr_spill_count: 0
    .symbol:         kernel_a.kd
    .vgpr_count:     156
    .vgpr_spill_count: {spills}
    .wavefront_size: 64
amdhsa.target:   {target}
"""


def notes(scratch=0, spills=0, target="amdgcn-amd-amdhsa--gfx950"):
    return NOTES.format(scratch=scratch, spills=spills, target=target)


class InspectObject(unittest.TestCase):
    def test_reads_the_fields(self):
        self.assertEqual(
            parse(notes()),
            {
                "symbol": "kernel_a",
                "target_id": "gfx950",
                "kernarg_bytes": 208,
                "lds_static_bytes": 34048,
                "scratch_bytes": 0,
                "vgpr_count": 156,
                "sgpr_count": 74,
                "wave_size": 64,
                "vgpr_spill_count": 0,
                "sgpr_spill_count": 0,
                "max_flat_workgroup_size": 256,
            },
        )
        quoted = "'amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-'"
        self.assertEqual(parse(notes(target=quoted))["target_id"], "gfx950:sramecc+:xnack-")

    def test_spills_and_scratch_are_problems(self):
        self.assertEqual(problems(parse(notes())), [])
        self.assertIn("vgpr_spill_count is 3", problems(parse(notes(spills=3)))[0])
        self.assertIn("scratch_bytes is 16", problems(parse(notes(scratch=16)))[0])

    def test_a_second_kernel_or_a_missing_field_is_an_error(self):
        with self.assertRaises(ValueError):
            parse(notes() + notes())
        with self.assertRaises(ValueError):
            parse(notes().replace(".sgpr_count", ".other"))


if __name__ == "__main__":
    unittest.main()
