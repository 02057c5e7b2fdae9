"""flydsl-aot verify: what it prints and how it ends."""
import re
import shlex
import unittest

from tool import ToolTest


class VerifyTest(ToolTest):
    def verify(self, *arguments):
        result = self.tool("verify", "attention_forward", "--device", "emulator", *arguments)
        self.assertEqual(result.stderr, "")
        return result

    def cases(self, text, name="cases.txt"):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_attention_decode(self):
        result = self.tool("verify", "attention_decode", "--device", "emulator", "--only", "^smoke_pytorch_108108", "--verbose")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertRegex(result.stdout, r"ok     smoke_pytorch_108108_top_left: out 0\.000 lse 0\.\d{3} attention_decode_bf16_d64_")
        self.assertTrue(result.stdout.endswith("\n3 passed, 0 failed\n"), result.stdout)
        fuzz = self.tool("verify", "attention_decode", "--device", "emulator", "--fuzz", "3", "--seed", "5")
        self.assertTrue(fuzz.stdout.endswith("\n3 passed, 0 failed\n"), fuzz.stdout)
        # What only attention_forward has.
        self.expect_error(2, "bias=fp32: this operator has no such argument", "verify", "attention_decode", "--device",
                          "emulator", "--case", "smoke_a bias=fp32")
        wrong = self.tool("verify", "attention_decode", "--device", "emulator", "--case", "smoke_a sk=3 v=position q=0 want_out=2")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("replay: flydsl-aot verify attention_decode --device emulator --case 'smoke_a sk=3", wrong.stdout)

    def test_passing_cases(self):
        result = self.verify("--only", "^smoke_pytorch_108108")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("EMULATED gfx950", result.stdout)
        self.assertTrue(result.stdout.endswith("\n6 passed, 0 failed\n"), result.stdout)
        verbose = self.verify("--only", "^smoke_tail_1_1$", "--verbose")
        self.assertRegex(verbose.stdout, r"\nok     smoke_tail_1_1: out 0\.\d+ lse 0\.\d+ attention_forward_bf16_d64_")

    def test_a_failing_case_says_how_to_repeat_it(self):
        line = "smoke_wrong sq=3 sk=5 q=0 v=position mask=causal:top-left want_out=0,0.5,2"
        path = self.cases(f"# a list\nsmoke_right sq=3\n{line}\nfull_other sq=4\n")
        result = self.verify("--cases", path, "--seed", "5")
        self.assertEqual(result.returncode, 1, result.stdout)
        lines = result.stdout.splitlines()
        self.assertIn("FAILED smoke_wrong: the oracle's out of row 2 is 1, but the case says 2: one is wrong", lines)
        self.assertEqual(lines[-1], "1 passed, 1 failed")
        replay = next(one for one in lines if one.startswith("  replay: "))
        words = shlex.split(replay.split(": ", 1)[1])
        self.assertEqual(words[0], "flydsl-aot")
        self.assertEqual(words[-4:], ["--case", line, "--seed", "5"])
        again = self.tool(*words[1:])
        self.assertEqual(again.returncode, 1)
        self.assertTrue(again.stdout.endswith("\n0 passed, 1 failed\n"), again.stdout)

    def test_a_call_that_is_refused_or_not_is_a_failure(self):
        for line, words in (("smoke_a sq=4 d=5000", "UNSUPPORTED_HEAD_DIM: "),
                            ("smoke_a sq=4 expect=INVALID_MASK", "the call gave OK (), not INVALID_MASK")):
            result = self.verify("--case", line)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("FAILED smoke_a: " + words, result.stdout)

    def test_suites_and_seeds(self):
        path = self.cases("smoke_a sq=3\nfull_b sq=4\nfull_c sq=5\n")
        self.assertTrue(self.verify("--cases", path, "--suite", "full").stdout.endswith("\n2 passed, 0 failed\n"))
        # Other numbers, other errors.
        one, other = (self.verify("--only", "^smoke_padded_7_7$", "--verbose", "--seed", seed).stdout for seed in "12")
        self.assertNotEqual(one, other)

    def test_fuzz_prints_its_seeds_and_repeats(self):
        result = self.verify("--fuzz", "4", "--seed", "11", "--verbose")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("\nfuzz       seeds 11 to 14\n", result.stdout)
        self.assertEqual(result.stdout.count("\nok     fuzz_1"), 4)
        self.assertTrue(result.stdout.endswith("\n4 passed, 0 failed\n"))
        self.assertEqual(result.stdout, self.verify("--fuzz", "4", "--seed", "11", "--verbose").stdout)

    def test_fuzz_of_lines_that_match(self):
        result = self.verify("--fuzz", "3", "--lines", " d=64 dv=64 ", "--seed", "50", "--verbose")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertTrue(result.stdout.endswith("\n3 passed, 0 failed\n"))
        self.assertEqual(len(re.findall(r"\nok     fuzz_\d+: .* attention_forward_(?:bf16|fp16)_d64_", result.stdout)), 3)
        last = re.findall(r"\nok     fuzz_(\d+)", result.stdout)[-1]
        self.assertRegex(result.stdout, rf"\nfuzz       seeds \d+ to {last}\n")

    def test_bad_input(self):
        emulator = ("verify", "attention_forward", "--device", "emulator")
        for words, arguments in (
                (["case smoke_a: key 'casual' is unknown; there is ", " mask, "], ("--case", "smoke_a casual=yes")),
                ("'sq' must be key=value", ("--case", "smoke_a sq")),
                ("case smoke_a is also line 1", ("--cases", self.cases("smoke_a sq=1\nsmoke_a sq=2\n"))),
                # Nothing runs if a later line is wrong.
                ("dtype=fp32: must be one of bf16, fp16", ("--cases", self.cases("smoke_b sq=1\nsmoke_c dtype=fp32\n", "later.txt"))),
                ("--cases /nowhere/list: cannot be read", ("--cases", "/nowhere/list")),
                ("no case is called so", ("--only", "^nothing$")),
                ("--only [", ("--only", "[")),
                ("--suite", ("--suite", "quick")),
                ("--fuzz", ("--fuzz", "0")),
                ("--lines requires --fuzz", ("--lines", "x")),
                ("--lines [", ("--fuzz", "1", "--lines", "[")),
                ("--lines nothing: no random case of 100000 from seed 0 on matches", ("--fuzz", "1", "--lines", "nothing")),
                ("--case", ("--fuzz", "1", "--case", "smoke_a"))):
            result = self.expect_error(2, words, *emulator, *arguments)
            self.assertEqual(result.stdout, "")
        self.expect_error(2, "verify has no cases of 'convolution'; there is attention_forward, attention_decode", "verify", "convolution")
        self.expect_error(2, "verify needs a device", "verify", "attention_forward", "--device", "none")

    def test_help(self):
        self.assertIn("1 some failed", self.tool("verify", "--help").stdout)
        self.assertIn("verify", self.tool("--help").stdout)


if __name__ == "__main__":
    unittest.main()
