"""What the library compiles at run time: sources without comments, with every header they include; instances that a problem can be served by."""

import tempfile
import unittest
from pathlib import Path

import support
from describe.registry import OPERATORS
from describe.rows import ARCHITECTURES
from generate import recipes, sources


class Comments(unittest.TestCase):
    def test_only_comments_go_and_lines_keep_their_numbers(self):
        for text, left in (
            ("a; // b\nc;\n", "a;\nc;\n"),
            ("a /* b\nc */ d;\n", "a\n d;\n"),
            ("f(/*x*/1);\n", "f( 1);\n"),
            ('asm("v // %0" /* "q */ :); // "\n', 'asm("v // %0"   :);\n'),
            ('s = "\\"//"; t = \'"\'; // u\n', 's = "\\"//"; t = \'"\';\n'),
            ("n = 1'000'000; // 1'0\n", "n = 1'000'000;\n"),
            ("// a\n\n  // b\n", "\n\n\n"),
        ):
            self.assertEqual(sources.without_comments(text), left)

    def test_no_source_has_what_this_does_not_know(self):
        for path in (support.ROOT / "kernels").rglob("*.h"):
            text = path.read_text()
            self.assertNotRegex(text, r'\bu?8?[RUL]+"', f"{path}: a raw string")
            self.assertNotRegex(text, r"//[^\n]*\\\n", f"{path}: a comment that goes on")


class Gathered(unittest.TestCase):
    def test_all_headers_are_there(self):
        with tempfile.TemporaryDirectory() as folder:
            generated = Path(folder)
            result = support.generate(generated, "gfx950")
            self.assertEqual(result.returncode, 0, result.stderr)
            files, _ = sources.gather(generated, support.ROOT / "kernels")
        texts = dict(files)
        self.assertEqual(files[0][0], "recipes.tsv")
        for name, text in files[1:]:
            self.assertNotIn("//", text.replace('"//', ""), name)
            for included in sources._INCLUDE.findall(text):
                self.assertIn(included, texts, name)


class Instances(unittest.TestCase):
    def test_one_name_is_one_kernel_of_an_architecture(self):
        for arch in ARCHITECTURES:
            names = [instance.name for op in OPERATORS for instance in op.compiled(arch)]
            self.assertEqual(len(names), len(set(names)), arch)

    def test_further_classes_of_head_dims_have_every_instance_on_gfx950(self):
        tables = {op.name: {table.name: table.rows for table in op.tables} for op in OPERATORS}
        by_name = {op.name: op for op in OPERATORS}

        def compiled(op, **fields):
            return [one for one in by_name[op].compiled("gfx950") if fields.items() <= dict(one.key).items()]

        for qk, v in tables["attention_forward"]["compiled_classes"]:
            self.assertEqual(len(compiled("attention_forward", head_dim_qk=qk, head_dim_v=v, general=1)), 2)
        for qk, v in tables["attention_backward"]["compiled_classes"]:
            self.assertEqual(len(compiled("attention_backward", head_dim_qk=qk, head_dim_v=v, general=1)), 2 * 3)
        for kv_format, qk, v, shared, row_blocks in tables["attention_decode"]["compiled_classes"]:
            found = compiled("attention_decode", head_dim_qk=qk, head_dim_v=v, kv_format=kv_format, shared=shared)
            self.assertEqual({dict(one.key)["row_blocks"] for one in found}, {n for n in range(16) if row_blocks >> n & 1})

    def test_attention_needs_no_archive_where_kernels_were_run(self):
        for op in OPERATORS:
            for arch in ("gfx90a", "gfx942", "gfx950") if op.name.startswith("attention_") else ():
                compiled = {one.name for one in op.compiled(arch)}
                for instance in op.instances(arch):
                    key = dict(instance.key)
                    general = key.get("general") and not key.get("padded")
                    if general or op.name == "attention_decode" or instance.name.endswith(("_prepare", "_sinks")):
                        self.assertIn(instance.name, compiled, arch)


class Files(unittest.TestCase):
    def test_sources_of_one_name_that_differ_have_files_of_their_own(self):
        files = recipes.files(OPERATORS)
        rows = [line.split("\t") for line in files[recipes.TABLE].splitlines()[2:]]
        self.assertGreater(len(rows), 100)
        for row in rows:
            self.assertIn(f"compiled/{row[3]}", files)
            self.assertIn(f" void {row[2]}(", files[f"compiled/{row[3]}"])


if __name__ == "__main__":
    unittest.main()
