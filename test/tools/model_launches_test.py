"""flydsl-aot bench OP and trace of an operator that launches two kernels: the figures are of the whole call."""
import json
import re
import unittest

from tool import ToolTest

SHAPES = ["--set=q=2x8x1x128", "--set=k=2x2x600x128", "--set=v=2x2x600x128"]


class ModelLaunchesTest(ToolTest):
    def model(self, *arguments, command="bench", **environment):
        result = self.tool(command, "attention_decode", "--device=emulator", *SHAPES, *arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        return result.stdout

    def test_figures_are_of_both_launches(self):
        lines = self.folder / "lines"
        report = json.loads(self.model("--json", FLYDSL_EMU_TIMING=str(lines)))
        launches = report["launches"]
        # What the model itself says about each launch, in order.
        self.assertEqual(launches, [json.loads(line) for line in lines.read_text().splitlines()])
        keys, reduction = launches
        self.assertRegex(keys["kernel"], "^attention_decode_bf16_d128")
        self.assertRegex(reduction["kernel"], "^attention_decode_bf16_reduce")
        self.assertGreater(keys["matrix_flops"], 0)
        for key in ("seconds", "clocks", "matrix_flops", "hbm_bytes", "l2_bytes"):
            self.assertGreater(reduction["seconds"], 0)
            self.assertAlmostEqual(report[key] / (keys[key] + reduction[key]), 1, 9, key)
        for rate, amount, unit in (("tflops", "matrix_flops", 1e-12), ("problem_tflops", "problem_flops", 1e-12),
                                   ("hbm_gb_per_s", "hbm_bytes", 1e-9)):
            self.assertAlmostEqual(report[rate] / (report[amount] / report["seconds"] * unit), 1, 9, rate)
        self.assertAlmostEqual(report["share_of_peak"] * report["seconds"],
                               sum(launch["share_of_peak"] * launch["seconds"] for launch in launches), 12)
        for name, hypothesis in report["lds_hypotheses"].items():
            self.assertAlmostEqual(hypothesis["seconds"],
                                   sum(launch["lds_hypotheses"][name]["seconds"] for launch in launches), 12)
        longest = launches[report["longest_launch"]]
        self.assertEqual(longest["seconds"], max(launch["seconds"] for launch in launches))
        for key in ("kernel", "grid", "utilisation", "stalls"):
            self.assertEqual(report[key], longest[key])

    def test_second_launch_that_reads_the_first(self):
        # It takes its counts from what all parts of the row left: in mode `sample` most of them had left nothing.
        result = self.tool("bench", "topk", "--device=emulator", "--json", "--set=x=1x262144", "--set=k=3", "--set=dtype=fp32")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        report = json.loads(result.stdout)
        parts, rest = report["launches"]
        self.assertRegex(parts["kernel"], "^topk_fp32_select_registers")
        self.assertRegex(rest["kernel"], "^topk_fp32_select_few_candidates")
        self.assertEqual(parts["grid"][0], 32)

    def test_kernel_whose_candidates_are_incomplete(self):
        # The same sequence with only some work-groups of the first launch run: wrong candidates, but nothing past the end of LDS.
        result = self.tool("run", "topk", "--device=emulator", "--set=x=1x262144", "--set=k=3", "--set=dtype=fp32",
                           f"--out=values={self.folder}/v.npy", f"--out=indices={self.folder}/i.npy",
                           FLYDSL_EMU_TIMING=str(self.folder / "lines"), FLYDSL_EMU_TIMING_MODE="sample")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)

    def test_work_groups_that_look_but_need_not_wait(self):
        # One key block a head: each looks at counters that nobody else writes.
        tensors = [f"--set={name}=1x32x256x128" for name in ("q", "k", "v", "out", "dout")]
        result = self.tool("bench", "attention_backward", "--device=emulator", "--json", *tensors, "--set=lse=1x32x256", "--set=causal=none")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        report = json.loads(result.stdout)
        self.assertRegex(report["kernel"], "^attention_backward_bf16_d128_none_fused")
        self.assertEqual(report["grid"][0], 32)

    def test_one_launch_has_no_list(self):
        shapes = [f"--set={name}=1x1x128x64" for name in "qkv"]
        result = self.tool("bench", "attention_forward", "--device=emulator", "--json", *shapes)
        report = json.loads(result.stdout)
        self.assertFalse({"launches", "longest_launch"} & report.keys())

    def test_reports_say_which_launch_they_show(self):
        folder = self.folder / "report"
        text = self.model("--report", folder)
        report = json.loads((folder / "report.json").read_text())
        which = f"launch {report['longest_launch'] + 1} of 2, the longest"
        self.assertRegex(text, f"launches +2, .*{which}")
        for index, launch in enumerate(report["launches"]):
            self.assertRegex(text, rf"launch {index + 1} .* modelled, {launch['kernel']}, ")
        listing = (folder / "annotated.txt").read_text()
        self.assertIn(f"; {report['kernel']}, {which}\n", listing)
        self.assertEqual(len(re.findall(r"^ *\d+ +\d+ +\S+ %  [0-9a-f]{8} ", listing, re.M)), len(report["profile"]))
        self.assertIn(f"({report['kernel']}, {which})", (folder / "report.html").read_text())

        file = self.folder / "trace.json"
        self.assertIn(f"{report['kernel']} ({which}) of one", self.model("-o", file, command="trace"))
        about = json.loads(file.read_text())["otherData"]
        longest = report["launches"][report["longest_launch"]]
        self.assertEqual((about["kernel"], about["clock_hz"]), (longest["kernel"], longest["clock_hz"]))


if __name__ == "__main__":
    unittest.main()
