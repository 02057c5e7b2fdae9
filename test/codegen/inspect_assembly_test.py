"""The gate on accumulation registers that kernels hide from the compiler."""

import unittest

import support  # noqa: F401  (puts codegen/ on the path)
from generate.inspect_assembly import foreign_uses

# As clang prints it: the kernel's own instructions stand between the two comments.
ASSEMBLY = """\
\t.type\tkernel,@function
kernel:                                 ; @kernel, which has a[0:3] in a comment
\tv_mov_b32_e32 v1, 0
\t;;#ASMSTART
\tv_accvgpr_write_b32 a[16], v1
\t;;#ASMEND
\t;;#ASMSTART
\tv_mfma_f32_32x32x16_bf16 a[0:15], v[2:5], v[6:9], a[0:15]
\t;;#ASMEND
{planted}
\ts_endpgm
\t.amdhsa_next_free_vgpr a0
"""


class InspectAssembly(unittest.TestCase):
    def uses(self, planted):
        return foreign_uses(ASSEMBLY.format(planted=planted))

    def test_own_instructions_are_no_problem(self):
        hidden, foreign = self.uses("\tds_read_b32 v3, v4 offset:16")
        self.assertEqual(hidden, set(range(17)))
        self.assertEqual(foreign, [])

    def test_a_compilers_spill_to_a_hidden_register_is_found(self):
        for planted in (
            "\tv_accvgpr_write_b32 a16, v7",
            "\tv_accvgpr_read_b32 v7, a3",
            "\tv_mfma_f32_32x32x16_bf16 a[12:27], v[2:5], v[6:9], 0",
            "\tds_read_b128 a[16:19], v4",
        ):
            with self.subTest(planted):
                self.assertEqual(self.uses(planted)[1], [(10, planted.strip())])

    def test_other_registers_are_the_compilers(self):
        self.assertEqual(self.uses("\tv_accvgpr_write_b32 a17, v7\n\tv_accvgpr_read_b32 v7, a[20]")[1], [])

    def test_without_inline_assembly_nothing_is_hidden(self):
        self.assertEqual(foreign_uses("\tv_accvgpr_write_b32 a1, v7\n"), (set(), []))


if __name__ == "__main__":
    unittest.main()
