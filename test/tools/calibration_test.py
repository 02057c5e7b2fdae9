"""flydsl-aot bench calibration, with a stand-in for test/emulator/peers/timing.py."""
import json
import unittest

from tool import ToolTest

BAD, FAILURE = 2, 4


def case(name, error, fitted=False, judged=True, constants="0123456789abcdef"):
    return dict(name=name, published=1000.0, modelled=1000 * (1 + error), error=error, fitted=fitted, judged=judged, constants_hash=constants,
                launches=[{}])


class CalibrationTest(ToolTest):
    def stand_in(self, cases=(), code=""):
        (self.folder / "timing.py").write_text(
            f"import sys\n{code}\nopen({str(self.folder / 'seen')!r}, 'w').write(' '.join(sys.argv[1:]))\n" +
            "".join(f"print({json.dumps(c)!r})\n" for c in cases))
        return dict(FLYDSL_AOT_PEERS_DIR=str(self.folder))

    def calibration(self, *arguments, cases):
        result = self.tool("bench", "calibration", *arguments, **self.stand_in(cases))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, status, words, **stand_in):
        self.expect_error(status, words, "bench", "calibration", **self.stand_in(**stand_in))

    def test_json(self):
        cases = [case("a", -0.04, fitted=True), case("b", 0.02), case("c", -0.06), case("d", 0.3, judged=False)]
        answer = json.loads(self.calibration("--json", cases=cases))
        self.assertEqual((answer["modelled"], answer["constants_hash"]), (True, "0123456789abcdef"))
        self.assertEqual([(c["name"], c["published"], c["modelled"], c["fitted"]) for c in answer["cases"]],
                         [("a", 1000, 960, True), ("b", 1000, 1020, False), ("c", 1000, 940, False), ("d", 1000, 1300, False)])
        self.assertNotIn("launches", answer["cases"][0])
        for side, count, mean, worst in (("fitted", 1, 0.04, 0.04), ("held_out", 2, 0.04, 0.06), ("held_out_short", 1, 0.3, 0.3)):
            self.assertEqual(answer["errors"][side]["cases"], count)
            self.assertAlmostEqual(answer["errors"][side]["mean"], mean)
            self.assertAlmostEqual(answer["errors"][side]["worst"], worst)

    def test_table(self):
        text = self.calibration("--only=x.*", cases=[case("forward/x", 0.125, fitted=True), case("forward/y", -0.5)])
        self.assertRegex(text, r"forward/x +1000 +1125 +12\.5% +fitted")
        self.assertRegex(text, r"held out +1 cases, mean 50\.0 %, worst 50\.0 %")
        self.assertRegex(text, "modelled; constants 0123456789abcdef")
        self.assertRegex((self.folder / "seen").read_text(), r"--calibration --only x\.\*")

    def test_refused(self):
        self.refused(FAILURE, "says why", code="sys.exit('says why')")
        self.refused(BAD, "says why", code="print('says why', file=sys.stderr); sys.exit(3)")
        self.refused(BAD, "no case")
        self.refused(FAILURE, "different constants", cases=[case("a", 0), case("b", 0, constants="another")])


if __name__ == "__main__":
    unittest.main()
