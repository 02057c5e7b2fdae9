"""rms_norm, layer_norm, their gradients and topk beside PyTorch's own operators on an NVIDIA GPU, in one process: the tables of docs/benchmarks/.

usage: python3 test/cuda/bench_torch.py [rms_norm] [layer_norm] [rms_norm_backward] [layer_norm_backward] [topk] [topk_softmax] [large] [--library build/lib]

Times are CUDA events around a graph of calls on rotated inputs that are together larger than the cache, divided by their number; the median of
several replays, both sides in turn. Results are compared before they are timed.
"""

import argparse
import statistics

import norms
import torch
from library import Library
from timing import BF16, FP16, FP32, NAMES, REPLAYS, copies, side_by_side, summary

RMS_NORM = [
    *((BF16, *shape) for shape in ((16384, 1024), (16384, 2048), (16384, 4096), (8192, 5120), (8192, 8192), (4096, 7168),
                                   (4096, 16384), (2048, 32768), (1024, 65536), (128, 114688))),
    *((FP16, *shape) for shape in ((16384, 4096), (8192, 8192), (4096, 16384), (2048, 32768), (1024, 65536), (128, 114688))),
    *((FP32, *shape) for shape in ((16384, 1024), (16384, 4096), (8192, 8192), (4096, 16384), (2048, 32768), (128, 114688))),
]
TOPK = [(4096, 1024, 2), (4096, 2048, 4), (8192, 4096, 8), (8192, 8192, 16), (16384, 1024, 16),
        (1024, 8192, 64), (256, 32768, 128), (64, 131072, 256), (8, 262144, 512), (1, 151936, 1024)]
# Experts and how many of them are chosen: Mixtral, OLMoE, Qwen3, DeepSeek-V3, Kimi K2, Qwen3-Next.
GATES = [(16384, 8, 2), (16384, 64, 8), (16384, 128, 8), (16384, 256, 8), (16384, 384, 8), (16384, 512, 10)]


def copy_bandwidth():
    """Of large device-to-device copies, read and written, in TB/s. (Not in a graph, where they go to the copy engines.)"""
    source = torch.randn(1 << 29, device="cuda")
    target = torch.empty_like(source)
    samples = []
    for _ in range(REPLAYS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(4):
            target.copy_(source)
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) / 4 * 1000)
    return 2 * source.numel() * 4 / statistics.median(samples[3:]) * 1e-6


def rms_norm(library, bandwidth):
    print("| dtype | rows | N | kernel | us | PyTorch us | speed-up | TB/s | of the copy |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for dtype, rows, length in RMS_NORM:
        moved = 2 * rows * length * dtype.itemsize
        n = copies(moved)
        inputs = [torch.randn(rows, length, device="cuda").to(dtype) for _ in range(n)]
        outputs = [torch.full_like(x, float("nan")) for x in inputs]
        weight = torch.randn(length, device="cuda").to(dtype)
        ours = [library.rms_norm(x, weight, out, 1e-6) for x, out in zip(inputs, outputs)]
        kernel = ours[0][1]
        ours[-1][0]()
        exact = inputs[-1].double()
        exact = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + 1e-6) * weight.double()
        error = ((outputs[-1].double() - exact).norm() / exact.norm()).item()
        assert error < {BF16: 3e-3, FP16: 4e-4, FP32: 1e-6}[dtype], (dtype, rows, length, error)
        del exact
        mine, theirs = side_by_side(
            [call for call, _ in ours],
            [lambda x=x: torch.nn.functional.rms_norm(x, (length,), weight, 1e-6) for x in inputs])
        ratios.append(theirs / mine)
        speed = moved / mine * 1e-6
        print(f"| {NAMES[dtype]} | {rows} | {length} | {kernel} | {mine:.1f} | {theirs:.1f} | {ratios[-1]:.2f} | {speed:.2f} | "
              f"{speed / bandwidth:.0%} |", flush=True)
    summary(ratios)


def topk(library, bandwidth):
    print("| rows | N | K | kernel | us | PyTorch us | speed-up | TB/s | of the copy |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for rows, length, k in TOPK:
        moved = rows * (length * 4 + k * 12)
        n = copies(moved)
        inputs = [torch.randn(rows, length, device="cuda") for _ in range(n)]
        values = [torch.empty(rows, k, device="cuda") for _ in inputs]
        indices = [torch.empty(rows, k, dtype=torch.int64, device="cuda") for _ in inputs]
        ours = [library.topk(*tensors) for tensors in zip(inputs, values, indices)]
        ours[-1][0]()
        expected = torch.topk(inputs[-1], k)
        assert torch.equal(expected.values, values[-1]), (rows, length, k)
        assert torch.equal(inputs[-1].gather(1, indices[-1]), values[-1]), (rows, length, k)
        mine, theirs = side_by_side([call for call, _ in ours], [lambda x=x: torch.topk(x, k) for x in inputs])
        ratios.append(theirs / mine)
        speed = moved / mine * 1e-6
        print(f"| {rows} | {length} | {k} | {ours[0][1]} | {mine:.1f} | {theirs:.1f} | {ratios[-1]:.2f} | {speed:.2f} | "
              f"{speed / bandwidth:.0%} |", flush=True)
    summary(ratios)


def topk_softmax(library, bandwidth):
    print("| rows | N | K | kernel | us | PyTorch us | speed-up | TB/s | of the copy |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for rows, length, k in GATES:
        moved = rows * (length * 2 + k * 8)
        n = copies(moved)
        inputs = [torch.randn(rows, length, device="cuda").to(BF16) for _ in range(n)]
        weights = [torch.empty(rows, k, device="cuda") for _ in inputs]
        indices = [torch.empty(rows, k, dtype=torch.int32, device="cuda") for _ in inputs]
        ours = [library.topk_softmax(*tensors, True) for tensors in zip(inputs, weights, indices)]

        def eager(x):
            shares, chosen = torch.topk(torch.softmax(x, -1, dtype=FP32), k)
            return shares / shares.sum(-1, keepdim=True), chosen.to(torch.int32)

        ours[-1][0]()
        chosen = inputs[-1].double().gather(1, indices[-1].long())
        assert torch.equal(chosen, inputs[-1].double().topk(k).values), (rows, length, k)
        assert (weights[-1].double() - chosen.softmax(-1)).abs().max().item() < 1e-5, (rows, length, k)
        mine, theirs = side_by_side([call for call, _ in ours], [lambda x=x: eager(x) for x in inputs])
        ratios.append(theirs / mine)
        speed = moved / mine * 1e-6
        print(f"| {rows} | {length} | {k} | {ours[0][1]} | {mine:.1f} | {theirs:.1f} | {ratios[-1]:.2f} | {speed:.2f} | "
              f"{speed / bandwidth:.0%} |", flush=True)
    summary(ratios)


def large(library, _):
    """Public reports whose size only a GPU takes in its stride."""
    # sgl-project/sglang#40583: so many rows that a work-group of 128 threads for each is 2^32 threads.
    rows = torch.arange(33_554_432, device="cuda").remainder(3).add(1)
    x = rows.to(BF16)[:, None].expand(-1, 16).contiguous()
    out = torch.full_like(x, float("nan"))
    library.rms_norm(x, torch.ones(16, dtype=BF16, device="cuda"), out, 1e-6)[0]()
    assert bool((out == 1).all()), "rows"
    del x, out, rows
    norms.many_rows(library)
    # pytorch/pytorch#197470: a row longer than 2^31.
    x = torch.zeros(1, 2147483650 + 6, dtype=FP16, device="cuda")[:, :2147483650]
    for place, value in ((2147483649, 5), (0, 4), (2147483647, 3), (1073741824, 2), (2147483648, 1)):
        x[0, place] = value
    values = torch.empty(1, 5, dtype=FP16, device="cuda")
    indices = torch.empty(1, 5, dtype=torch.int64, device="cuda")
    library.topk(x, values, indices)[0]()
    assert values.tolist() == [[5, 4, 3, 2, 1]], values
    assert indices.tolist() == [[2147483649, 0, 2147483647, 1073741824, 2147483648]], indices
    del x
    # pytorch/pytorch#95455: indices past the row's end.
    r = torch.arange(2120, device="cuda")[:, None]
    x = ((7919 * torch.arange(500000, device="cuda")[None] + r) % 500000).to(FP32)
    values = torch.empty(2120, 20, device="cuda")
    indices = torch.empty(2120, 20, dtype=torch.int64, device="cuda")
    library.topk(x, values, indices)[0]()
    wanted = torch.arange(499999, 499979, -1, device="cuda")
    assert bool((values == wanted).all()), "values"
    assert bool((indices == (wanted - r) * pow(7919, -1, 500000) % 500000).all()), "indices"
    print("large: 4 of 4 passed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"rms_norm": rms_norm, "layer_norm": norms.layer_norm, "rms_norm_backward": norms.rms_norm_backward,
             "layer_norm_backward": norms.layer_norm_backward, "topk": topk, "topk_softmax": topk_softmax, "large": large}
    parser.add_argument("what", nargs="*", default=list(parts))
    parser.add_argument("--library", default="build/lib", help="folder of libflydsl_aot.so.0 and its archive")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    library = Library(arguments.library)
    bandwidth = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, copy {bandwidth:.2f} TB/s (read and written)\n")
    for what in arguments.what:
        print(f"{what}\n")
        parts[what](library, bandwidth)


if __name__ == "__main__":
    main()
