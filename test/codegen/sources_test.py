"""What the library compiles at run time: sources without comments, with every header they include."""

import tempfile
import unittest
from pathlib import Path

import support
from describe.registry import OPERATORS
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
