"""layer_norm and the gradients of both norms beside PyTorch's: functions of bench_torch.py."""

import torch
from library import LayerNormBackwardParams, LayerNormParams, RmsNormBackwardParams, Tensor
from timing import BF16, FP16, FP32, NAMES, copies, side_by_side, summary

CASES = [
    *((BF16, *shape) for shape in ((16384, 1024), (16384, 2048), (16384, 4096), (8192, 5120), (8192, 8192), (4096, 16384), (2048, 32768))),
    *((FP16, *shape) for shape in ((16384, 4096), (8192, 8192), (2048, 32768))),
    *((FP32, *shape) for shape in ((16384, 1024), (16384, 4096), (8192, 8192), (2048, 32768))),
]
EPS = 1e-5
TOLERANCES = {BF16: 4e-3, FP16: 5e-4, FP32: 2e-6}


def check(what, got, exact, dtype):
    error = ((got.double() - exact).norm() / exact.norm()).item()
    assert error < TOLERANCES[dtype], (what, dtype, tuple(got.shape), error)


def table(library, bandwidth, one_case):
    print("| dtype | rows | N | kernel | us | PyTorch us | speed-up | TB/s | of the copy |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for dtype, rows, length in CASES:
        moved, kernel, mine, theirs = one_case(library, dtype, rows, length)
        ours, pytorch = side_by_side(mine, theirs)
        ratios.append(pytorch / ours)
        speed = moved / ours * 1e-6
        print(f"| {NAMES[dtype]} | {rows} | {length} | {kernel} | {ours:.1f} | {pytorch:.1f} | {ratios[-1]:.2f} | {speed:.2f} | "
              f"{speed / bandwidth:.0%} |", flush=True)
    summary(ratios)


def rotated(count, rows, length, dtype):
    return [torch.randn(rows, length, device="cuda").to(dtype) for _ in range(count)]


def kept_alive(ours, tensors):
    """The calls, and with them the tensors that only the library knows of."""
    return [lambda call=call, keep=keep: call() for (call, _), keep in zip(ours, tensors)]


def layer_norm_case(library, dtype, rows, length):
    moved = 2 * rows * length * dtype.itemsize
    inputs = rotated(copies(moved), rows, length, dtype)
    outputs = [torch.full_like(x, float("nan")) for x in inputs]
    weight, bias = (torch.randn(length, device="cuda").to(dtype) for _ in range(2))
    ours = [library.call("layer_norm", LayerNormParams(eps=EPS, x=Tensor.of(x), weight=Tensor.of(weight), bias=Tensor.of(bias),
                                                       out=Tensor.of(out))) for x, out in zip(inputs, outputs)]
    ours[-1][0]()
    exact = torch.nn.functional.layer_norm(inputs[-1].double(), (length,), weight.double(), bias.double(), EPS)
    check("layer_norm", outputs[-1], exact, dtype)
    theirs = [lambda x=x: torch.nn.functional.layer_norm(x, (length,), weight, bias, EPS) for x in inputs]
    return moved, ours[0][1], kept_alive(ours, outputs), theirs


def backward_case(library, dtype, rows, length, centred):
    """PyTorch's side is the operator that autograd calls, on the numbers that its forward pass gives."""
    moved = 3 * rows * length * dtype.itemsize
    count = copies(moved)
    inputs, gradients = rotated(count, rows, length, dtype), rotated(count, rows, length, dtype)
    weight, bias = (torch.randn(length, device="cuda").to(dtype) for _ in range(2))
    aten = torch.ops.aten
    if centred:
        saved = [aten.native_layer_norm(x, (length,), weight, bias, EPS)[1:] for x in inputs]
        theirs = [lambda x=x, d=d, s=s: aten.native_layer_norm_backward(d, x, (length,), s[0], s[1], weight, bias, [True] * 3)
                  for x, d, s in zip(inputs, gradients, saved)]
    else:
        saved = [aten._fused_rms_norm(x, (length,), weight, EPS)[1:] for x in inputs]
        theirs = [lambda x=x, d=d, s=s: aten._fused_rms_norm_backward(d, x, (length,), s[0], weight, [True] * 2)
                  for x, d, s in zip(inputs, gradients, saved)]
    ours, results = [], []
    for x, d, s in zip(inputs, gradients, saved):
        numbers = [one.float().reshape(rows) for one in s]
        dx = torch.full_like(x, float("nan"))
        dweight, dbias = (torch.full_like(weight, float("nan")) for _ in range(2))
        common = dict(x=Tensor.of(x), dout=Tensor.of(d), weight=Tensor.of(weight), rstd=Tensor.of(numbers[-1]), dx=Tensor.of(dx),
                      dweight=Tensor.of(dweight))
        results.append((dx, dweight, dbias, numbers))
        if centred:
            ours.append(library.call("layer_norm_backward", LayerNormBackwardParams(
                mean=Tensor.of(numbers[0]), dbias=Tensor.of(dbias), **common)))
        else:
            ours.append(library.call("rms_norm_backward", RmsNormBackwardParams(**common)))
    ours[-1][0]()
    check_gradients(inputs[-1], gradients[-1], weight, bias, results[-1], centred)
    return moved, ours[0][1], kept_alive(ours, results), theirs


def check_gradients(x, dout, weight, bias, results, centred):
    """Beside those of float64 autograd."""
    exact = [t.double().requires_grad_() for t in (x, weight, bias)]
    if centred:
        out = torch.nn.functional.layer_norm(exact[0], (x.shape[1],), exact[1], exact[2], EPS)
    else:
        out = exact[0] * torch.rsqrt(exact[0].square().mean(-1, keepdim=True) + EPS) * exact[1]
    out.backward(dout.double())
    for name, got, leaf in zip(("dx", "dweight", "dbias"), results, exact):
        if leaf.grad is not None:
            check(name, got, leaf.grad, x.dtype)


def layer_norm(library, bandwidth):
    table(library, bandwidth, layer_norm_case)


def rms_norm_backward(library, bandwidth):
    table(library, bandwidth, lambda *case: backward_case(*case, centred=False))


def layer_norm_backward(library, bandwidth):
    table(library, bandwidth, lambda *case: backward_case(*case, centred=True))


def many_rows(library):
    """sgl-project/sglang#40583, backwards: x = 1, dout = 1 and rstd = 1/2: dx = (1 - 1/4) / 2, and half of the rows' number for dweight."""
    x = torch.ones(33_554_432, 16, dtype=BF16, device="cuda")
    dx = torch.full_like(x, float("nan"))
    dweight = torch.full((16,), float("nan"), device="cuda")
    rstd = torch.full((x.shape[0],), 0.5, device="cuda")
    library.call("rms_norm_backward", RmsNormBackwardParams(
        x=Tensor.of(x), dout=Tensor.of(x), rstd=Tensor.of(rstd), dx=Tensor.of(dx), dweight=Tensor.of(dweight)))[0]()
    assert bool((dx == 0.375).all()), "dx"
    assert bool((dweight == x.shape[0] / 2).all()), dweight
