"""Sequences of different lengths share the compute units: under the timing model a long one among short ones costs what it costs alone."""
import json
import unittest

from tool import ToolTest


class BalanceTest(ToolTest):
    def modelled(self, lengths, *settings, heads=8):
        starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        tokens = [f"--set={name}={heads}x{starts[-1]}x128" for name in "qkv"]
        numbers = [f"--set=cu_seqlens_{side}={','.join(map(str, starts))}" for side in "qk"]
        # One kernel for all, whatever tuning rows prefer for a problem.
        result = self.tool("bench", "attention_forward", "--device=emulator", "--json", *tokens, *numbers, *settings, FLYDSL_AOT_TUNING="off")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def test_one_long_sequence(self):
        short = [256] * 31
        for settings in ((), ("--set=causal=bottom-right",)):
            # 131,072 rows by themselves: alone, too, it takes the instance of many rows.
            alone = self.modelled([8192], *settings, heads=16)
            first, last = (self.modelled(lengths, *settings, heads=16) for lengths in ([8192] + short, short + [8192]))
            # The short ones have 3 % of its work, 6 % of a causal one's, and start-ups.
            for mixed in (first, last):
                self.assertEqual(mixed["kernel"], alone["kernel"], settings)
                self.assertLess(mixed["seconds"], 1.25 * alone["seconds"], settings)
                self.assertGreater(mixed["seconds"], alone["seconds"], settings)

    def test_work_groups_without_work(self):
        # Each sequence has at most one tile more than its rows fill: not 32 times those of the longest.
        rows = self.modelled([8192] + [256] * 31)["grid"][0] // 8
        self.assertLessEqual(rows, (8192 + 31 * 256) // 128 + 32)


if __name__ == "__main__":
    unittest.main()
