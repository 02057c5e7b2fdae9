"""Output of the generator: deterministic, stable files stay untouched, headers compile."""

import hashlib
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import support

ARCH = "gfx950"


class Generate(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.dir = Path(holder.name)

    def run_ok(self, out, *archs):
        result = support.generate(out, *archs)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")

    def test_two_runs_give_equal_bytes(self):
        self.run_ok(self.dir / "a", ARCH)
        self.run_ok(self.dir / "b", ARCH)
        a, b = support.tree(self.dir / "a"), support.tree(self.dir / "b")
        self.assertIn("include/flydsl_aot_generated/abi.h", a)
        self.assertIn(f"{ARCH}/manifest.json", a)
        self.assertEqual(a, b)
        for path, data in a.items():
            self.assertNotIn(str(support.ROOT).encode(), data, f"{path} names a path of this machine")
            self.assertIn(b"codegen/generate/main.py, inputs ", data.split(b"\n")[0] + data.split(b"\n")[1])

    def test_unchanged_files_keep_their_time_and_changed_ones_come_back(self):
        self.run_ok(self.dir, ARCH)
        before = support.tree(self.dir)
        paths = [self.dir / path for path in before]
        for path in paths:
            os.utime(path, ns=(10**18, 10**18))
        damaged = self.dir / f"{ARCH}/kernels.cmake"
        damaged.write_text("damaged")
        self.run_ok(self.dir, ARCH)
        self.assertEqual(support.tree(self.dir), before)  # no temporary file left either
        for path in paths:
            touched = path.stat().st_mtime_ns != 10**18
            self.assertEqual(touched, path == damaged, path)

    def test_unknown_architecture_is_refused(self):
        result = support.generate(self.dir, "gfx000")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("gfx000", result.stderr)
        self.assertEqual(support.tree(self.dir), {})

    def test_headers_compile_as_c_and_cxx_and_the_key_packs_as_the_manifest_says(self):
        self.run_ok(self.dir, ARCH)
        source = self.dir / "probe.c"
        source.write_text(
            "#include <stdio.h>\n"
            '#include "flydsl_aot_generated/abi.h"\n'
            '#include "flydsl_aot_generated/attention_forward_kernarg.h"\n'
            "int main(void) {\n"
            '  printf("%016llx %d\\n",\n'
            "         (unsigned long long)flydsl_aot_attention_forward_key(4, 128, 64, 1, 1, 1, 1, 1),\n"
            "         (int)sizeof(flydsl_aot_attention_forward_kernarg));\n"
            "  return 0;\n}\n"
        )
        flags = ["-Wall", "-Wextra", "-Werror", "-I", str(self.dir / "include")]
        for compiler, language in (
            (os.environ.get("CODEGEN_C_COMPILER", "cc"), ["-std=c11", "-pedantic", "-x", "c"]),
            (os.environ.get("CODEGEN_CXX_COMPILER", "c++"), ["-std=c++20", "-x", "c++"]),
        ):
            program = self.dir / "probe"
            subprocess.run([compiler, *flags, *language, str(source), "-o", str(program)], check=True)
            printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
            key = 4 | 128 << 8 | 64 << 20 | 1 << 32 | 15 << 36
            self.assertEqual(printed, f"{key:016x} 608\n")

    def test_layout_and_abi_ids_follow_the_format_document(self):
        from describe.attention_forward import OPERATOR
        from generate import layout

        text = layout.layout_text(OPERATOR)
        self.assertTrue(text.startswith("const void * q @0\nconst void * k @8\n"))
        self.assertIn("\nint64_t q_stride_b @40\n", text)
        self.assertTrue(text.endswith("key general 36 1\nkey float8 37 1\nkey padded 38 1\nkey many_rows 39 1\n"))
        layout_id = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        self.assertEqual(layout.layout_id(OPERATOR), layout_id)
        abi = f"attention_forward:{layout_id:016x}\nselection:2\n"
        abi_id = int.from_bytes(hashlib.sha256(abi.encode()).digest()[:8], "little")
        self.assertEqual(layout.abi_id((OPERATOR,)), abi_id)


if __name__ == "__main__":
    unittest.main()
