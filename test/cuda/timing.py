"""Times of calls on rotated inputs, both sides in turn: what the tables of bench_torch.py share."""

import math
import statistics

import torch

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
NAMES = {BF16: "bf16", FP16: "fp16", FP32: "fp32"}
ROTATED_BYTES = 512 << 20
REPLAYS = 15


class Timed:
    """Calls captured into a graph."""

    def __init__(self, calls):
        for call in calls[:2]:
            call()
        torch.cuda.synchronize()
        self.count = len(calls)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for call in calls:
                call()
        self.samples = []

    def replay(self):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        self.samples.append(begin.elapsed_time(end) * 1000 / self.count)

    @property
    def microseconds(self):
        return statistics.median(self.samples[3:])


def side_by_side(*sides):
    timed = [Timed(calls) for calls in sides]
    for _ in range(REPLAYS):
        for one in timed:
            one.replay()
    return [one.microseconds for one in timed]


def copies(bytes_of_one):
    return max(4, min(64, math.ceil(ROTATED_BYTES / bytes_of_one)))


def summary(ratios):
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"\n{len(ratios)} cases: geometric mean {mean:.2f}, least {min(ratios):.2f}\n", flush=True)
