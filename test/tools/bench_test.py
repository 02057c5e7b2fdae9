"""`flydsl-aot bench emulator`: the keys scripts rely on, and figures that can be true."""
import json
import unittest

from tool import ToolTest


class BenchTest(ToolTest):
    def bench(self, *arguments, **environment):
        result = self.tool("bench", "emulator", *arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        return result.stdout

    def test_json(self):
        figures = json.loads(self.bench("--json"))
        self.assertEqual(list(figures), ["emulator_version", "threads", "time", "valu_wave_instructions_per_s",
                                         "mfma_bf16_flop_per_s", "mfma_mxfp8_flop_per_s", "checks_all_slowdown"])
        self.assertEqual((figures["threads"], figures["time"]), (1, "host"))
        self.assertGreater(figures["valu_wave_instructions_per_s"], 1e5)
        self.assertGreater(figures["mfma_bf16_flop_per_s"], 1e7)
        # Checks cost something; at most five times the time without is promised, a busy machine is not a failure.
        self.assertGreater(figures["checks_all_slowdown"], 1)
        self.assertLess(figures["checks_all_slowdown"], 10)

    def test_table(self):
        rows = self.bench(FLYDSL_EMU_CHECKS="all", FLYDSL_EMU_MEMORY="strict")  # the loops are measured without
        for word in ("valu_wave_instructions_per_s", "GFLOP/s", "checks_all_slowdown", "host speed"):
            self.assertIn(word, rows)


if __name__ == "__main__":
    unittest.main()
