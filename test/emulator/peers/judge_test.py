"""Shows that the judge, the formats, the oracle and the runner find what they are there to find.

usage: judge_test.py DIR (that of fetch.sh)
"""
import os
import pathlib
import sys
import tempfile
import time
import unittest

from launch import environment

environment.enter(sys.argv[1])

import numpy as np

from launch import formats, judge, oracle, runner
from launch.recipe import Recipe


class Judge(unittest.TestCase):
    def test_error_bounds(self):
        want = np.linspace(-1, 1, 1000)
        judge.close("x", want * (1 + 1e-6), want, 1e-5)
        with self.assertRaises(judge.Wrong):
            judge.close("x", want * (1 + 1e-4), want, 1e-5)
        one_bad = want.copy()
        one_bad[17] += 0.02  # small in the norm, large as an element
        with self.assertRaisesRegex(judge.Wrong, r"worst at \(17,\)"):
            judge.close("x", one_bad, want, 2e-3, worst=1e-2)
        with self.assertRaises(judge.Wrong):
            judge.close("x", want[:-1], want, 1)

    def test_not_finite(self):
        judge.close("x", [1, np.nan, np.inf], [1, np.nan, np.inf], 1e-6)
        for got in ([1, 2, np.inf], [1, np.nan, -np.inf], [np.nan, np.nan, np.inf]):
            with self.assertRaises(judge.Wrong):
                judge.close("x", got, [1, np.nan, np.inf], 1e-6)

    def test_equal(self):
        judge.equal("x", [1, 2], [1, 2])
        with self.assertRaises(judge.Wrong):
            judge.equal("x", [1, 3], [1, 2])


class Formats(unittest.TestCase):
    # Largest finite and smallest positive value: OCP 8-bit FP and MX specifications; FNUZ halves both limits of the exponent.
    LIMITS = {"e4m3": (448, 2**-9), "e5m2": (57344, 2**-16), "e4m3fnuz": (240, 2**-10), "e5m2fnuz": (57344, 2**-17), "e2m1": (6, 0.5)}

    def test_limits(self):
        for name, (largest, smallest) in self.LIMITS.items():
            finite = formats.TABLES[name][np.isfinite(formats.TABLES[name])]
            self.assertEqual((finite.max(), finite[finite > 0].min()), (largest, smallest), name)

    def test_rounding(self):
        for name in self.LIMITS:
            table = formats.TABLES[name]
            codes = np.nonzero(np.isfinite(table))[0]
            np.testing.assert_array_equal(formats.decode(formats.encode(table[codes], name), name), table[codes])
            self.assertEqual(formats.decode(formats.encode(1e30, name), name), self.LIMITS[name][0])
        self.assertEqual(formats.decode(formats.encode(2.5, "e2m1"), "e2m1"), 2)  # ties go to the even code
        self.assertEqual(formats.decode(formats.encode(5.0, "e2m1"), "e2m1"), 4)
        self.assertEqual(formats.to_bf16(np.float32(1 + 2**-8)), 0x3F80)
        self.assertEqual(formats.to_bf16(np.float32(1 + 3 * 2**-8)), 0x3F82)


class Oracle(unittest.TestCase):
    def test_backward_is_the_derivative(self):
        rng = np.random.default_rng(1)
        q, k, v, do = (rng.standard_normal((1, n, 3)) for n in (4, 5, 5, 4))
        visible = oracle.seen(4, 5, "bottom_right")
        out, _, p = oracle.forward(q, k, v, 0.7, visible)
        for which, gradient in enumerate(oracle.backward(q, k, v, do, 0.7, p, out)):
            def loss(step, at):
                moved = [x.copy() for x in (q, k, v)]
                moved[which][at] += step
                return np.sum(oracle.forward(*moved, 0.7, visible)[0] * do)

            for at in np.ndindex(gradient.shape):
                self.assertAlmostEqual((loss(1e-5, at) - loss(-1e-5, at)) / 2e-5, gradient[at], places=7)

    def test_row_without_keys(self):
        x = np.ones((1, 2, 2))
        out, lse, _ = oracle.forward(x, x[:, :1], x[:, :1], 1, oracle.seen(2, 1, "bottom_right"))
        self.assertEqual((out[0, 0].tolist(), lse[0, 0]), ([0, 0], -np.inf))


class Runner(unittest.TestCase):
    def outcome(self, action, timeout_s=30):
        class NoLibrary:
            def check_guards(self):
                pass

        saved, runner.Hip = runner.Hip, lambda library: NoLibrary()
        try:
            return runner.run_one(Recipe("peer/kernel", "peer", "gfx950", action), "", timeout_s)
        finally:
            runner.Hip = saved

    def test_states(self):
        def refuse(hip):
            raise RuntimeError("hipModuleLaunchKernel: 719")

        self.assertEqual(self.outcome(lambda hip: ["C 1e-7"]).state, "pass")
        self.assertEqual(self.outcome(lambda hip: [judge.equal("x", [1], [2])]).state, "wrong")
        self.assertEqual(self.outcome(refuse).state, "stopped")
        self.assertIn("719", self.outcome(refuse).text)
        self.assertEqual(self.outcome(lambda hip: os.abort()).state, "crash")
        self.assertEqual(self.outcome(lambda hip: time.sleep(60), timeout_s=0.3).state, "timeout")

    def test_expected_failures(self):
        def run(state, expected):
            return runner.verdict([runner.Outcome("peer/kernel", "peer", state, 0, "")], expected)[1]

        self.assertTrue(run("pass", {}))
        self.assertFalse(run("stopped", {}))
        self.assertTrue(run("stopped", {"peer/kernel": "v_new"}))
        self.assertFalse(run("pass", {"peer/kernel": "v_new"}))
        self.assertFalse(run("pass", {"peer/gone": "v_new"}))
        self.assertFalse(runner.verdict([], {})[1])

    def test_reports(self):
        said = "flydsl_emu: k: work-group (0,0,0) wave 1 lane 0 at 0x8 `ds_read_b32 v0, v1`: race: reads 4 bytes\nC 1e-7"

        def run(state, text, expected):
            return runner.verdict_on_reports([runner.Outcome("peer/kernel", "peer", state, 0, text)], expected)[1]

        self.assertTrue(run("pass", "C 1e-7", {}))
        self.assertFalse(run("pass", said, {}))
        self.assertTrue(run("pass", said, {"peer/kernel": "race by design"}))
        self.assertFalse(run("pass", said, {"peer/kernel": "race,waitcnt by design"}))
        self.assertFalse(run("pass", "C 1e-7", {"peer/kernel": "race by design"}))
        self.assertFalse(run("stopped", "", {}))
        self.assertFalse(run("pass", "C 1e-7", {"peer/gone": "race by design"}))

    def test_expected_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "expected.txt")
            path.write_text("# comment\npeer/kernel v_new is missing\n")
            self.assertEqual(runner.read_expected(path), {"peer/kernel": "v_new is missing"})
            path.write_text("peer/kernel\n")
            with self.assertRaises(ValueError):
                runner.read_expected(path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
