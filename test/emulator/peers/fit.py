#!/usr/bin/env python3
"""Fits the constants of the timing model that are marked `fitted` to the fitted half of the calibration cases (modelled/cases.py).

usage: timing.py --library L --objects DIR --calibration --save TRACES > before.jsonl
       fit.py --replay flydsl_timing_replay --traces TRACES [--out CHANGES]     with a Python that has NumPy

The rule, written before it was run for the first time:
  - For each of the two LDS hypotheses (128 and 256 bytes a clock) on its own, the sum of squared log(modelled / published) over the
    fitted cases is minimised over the constants in FITTED, starting from the table, by damped Gauss-Newton steps. Every
    other constant keeps the value that its source gives.
  - The hypothesis with the smaller sum becomes the table's; its values are the table's for the constants that the hypotheses share.
    The clock's level and exponent are kept for both.
  - Held-out cases enter neither the sums nor the choice of the hypothesis.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

from modelled import calibration, cases
from modelled.session import constants as table

# Constant -> range that it may take. {} stands for the bytes a clock of the hypothesis.
FITTED = {"clock_level_{}_hz": (0.8e9, 2.4e9), "clock_exponent_{}": (0.0, 1.0), "launch_overhead_seconds": (1e-6, 1e-5),
          "group_start_clocks": (100, 4000), "measured_call_seconds_forward": (5e-6, 1e-4), "measured_call_seconds_backward": (1e-5, 4e-4)}
ROUNDS, STEP = 10, 0.03


class Fit:
    def __init__(self, replay, traces, hypothesis):
        self.hypothesis, self.names = hypothesis, [name.format(hypothesis) for name in FITTED]
        self.ranges = dict(zip(self.names, FITTED.values()))
        self.cases = [case for case in cases.cases() if case.fitted]
        self.files = [sorted(pathlib.Path(traces).glob(case.name.replace("/", "_") + "*")) for case in self.cases]
        if missing := [case.name for case, files in zip(self.cases, self.files) if not files]:
            sys.exit(f"no traces of {missing} in {traces}")
        self.process = subprocess.Popen([replay, "--fit", *(str(f) for files in self.files for f in files)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def errors(self, values):
        """log(modelled / published seconds) of each fitted case."""
        settings = values | {"lds_bytes_per_clock": self.hypothesis}
        print(" ".join(f"{name}={value!r}" for name, value in settings.items()), file=self.process.stdin, flush=True)
        launches = iter(json.loads(self.process.stdout.readline()))
        found = []
        for case, files in zip(self.cases, self.files):
            modelled = calibration.seconds(case.row, [next(launches) for _ in files], values)
            found.append(math.log(modelled / calibration.published.seconds(case.row)))
        return found

    def limited(self, values):
        return {name: min(max(float(value), self.ranges[name][0]), self.ranges[name][1]) for name, value in values.items()}

    def run(self, values):
        import numpy as np

        errors, damping = np.array(self.errors(values)), 1e-3
        for _ in range(ROUNDS):
            steps = {name: STEP * (values[name] or 1) * (-1 if values[name] * (1 + STEP) > self.ranges[name][1] else 1) for name in self.names}
            slopes = np.array([np.array(self.errors(values | {name: values[name] + step})) - errors for name, step in steps.items()])
            for _ in range(6):
                units = np.linalg.solve(slopes @ slopes.T + damping * np.diag(np.diag(slopes @ slopes.T)), -slopes @ errors)
                trial = self.limited({name: values[name] + unit * steps[name] for name, unit in zip(self.names, units)})
                after = np.array(self.errors(trial))
                if after @ after < errors @ errors:
                    break
                damping *= 10
            else:
                break
            gain, damping = errors @ errors - after @ after, damping / 10
            values, errors = trial, after
            print(f"{self.hypothesis} B/clk: rms {math.sqrt(errors @ errors / len(errors)):.4f} {values}", file=sys.stderr, flush=True)
            if gain < 1e-5:
                break
        return values, float(errors @ errors)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--replay", required=True)
    parser.add_argument("--traces", required=True)
    parser.add_argument("--out", help="file for the constants, as FLYDSL_EMU_TIMING_CONSTANTS reads it")
    options = parser.parse_args()
    start, results = table(), {}
    for hypothesis in (128, 256):
        fit = Fit(options.replay, options.traces, hypothesis)
        results[hypothesis] = fit.run(fit.limited({name: start[name] for name in fit.names}))
    best = min(results, key=lambda hypothesis: results[hypothesis][1])
    chosen = results[384 - best][0] | results[best][0] | {"lds_bytes_per_clock": best}
    text = "".join(f"{name} {value:.4g}\n" for name, value in chosen.items())
    for hypothesis, (_, squares) in results.items():
        print(f"# {hypothesis} bytes a clock: rms {math.sqrt(squares / len(fit.cases)):.4f} over {len(fit.cases)} fitted cases")
    print(text, end="")
    if options.out:
        pathlib.Path(options.out).write_text(text)


if __name__ == "__main__":
    main()
