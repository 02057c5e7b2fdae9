"""Compiles triton_kernels.py for gfx950, gfx942 and gfx90a: <arch>/<name>.co and triton.json (how to launch each).

usage: compile_triton.py <output folder>
Needs the `triton` wheel only; no device.
"""
import json
import pathlib
import sys

import triton_kernels as kernels
import triton_offline as offline

ALL = ("gfx950", "gfx942", "gfx90a")
CDNA34 = ("gfx950", "gfx942")
B, H, F, I32 = "*bf16", "*fp16", "*fp32", "i32"
cases = []


def case(name, kernel, types, constants, archs=ALL, warps=4, stages=2, aligned=True):
    cases.extend((arch, name, kernel, types, constants, warps, stages, aligned) for arch in archs)


def attention_types(t):
    return [t, t, t, t, F, "fp32", I32, I32, I32, I32, I32]


for dtype, t in (("bf16", B), ("f16", H)):
    for d, bm, bn, warps, causal in ((128, 128, 64, 8, False), (128, 128, 64, 8, True), (64, 64, 64, 4, True), (64, 128, 32, 4, False)):
        case(f"attention_{dtype}_d{d}_{bm}x{bn}_{'causal' if causal else 'full'}", "attention",
              attention_types(t), dict(D=d, BM=bm, BN=bn, CAUSAL=causal), warps=warps)
case("attention_unaligned_bf16_d64", "attention", attention_types(B),
      dict(D=64, BM=64, BN=32, CAUSAL=True), aligned=False, stages=1)
for d, causal in ((64, True), (128, False)):
    case(f"attention_backward_bf16_d{d}_{'causal' if causal else 'full'}", "attention_backward",
          [B, B, B, B, F, F, F, B, B, "fp32", I32, I32, I32], dict(D=d, BM=32, BN=64, CAUSAL=causal), stages=1)
TILE = dict(BM=128, BN=128, BK=64, GROUP=4)
for dtype, t, archs in (("bf16", B, ALL), ("f16", H, ALL), ("e4m3", "*fp8e4nv", ("gfx950",)), ("e5m2", "*fp8e5", ALL),
                        ("e4m3fnuz", "*fp8e4b8", ("gfx942",)), ("f32", F, ALL)):
    case(f"matmul_{dtype}", "matmul", [t, t, F if dtype[0] == "e" else t] + [I32] * 6, TILE if dtype != "f32" else TILE | dict(BK=32),
          archs, warps=8)
case("matmul_i8", "matmul", ["*i8", "*i8", "*i32"] + [I32] * 6, TILE, warps=4)
case("matmul_bf16_ragged", "matmul", [B, B, F] + [I32] * 6, dict(BM=64, BN=32, BK=32, GROUP=2), aligned=False)
case("matmul_bf16_16x16", "matmul", [B, B, F] + [I32] * 6, dict(BM=16, BN=16, BK=64, GROUP=1), warps=1)
case("matmul_split_k_f16", "matmul_split_k", [H, H, F, I32, I32, I32], dict(BM=64, BN=64, BK=32))
case("matmul_split_k_bf16_atomic", "matmul_split_k", [B, B, B, I32, I32, I32], dict(BM=64, BN=64, BK=32), CDNA34)
for fa, fb in (("e4m3", "e4m3"), ("e2m1", "e2m1"), ("e5m2", "e2m1"), ("e4m3", "e2m1")):
    case(f"matmul_scaled_{fa}_{fb}", "matmul_scaled",
          [{"e4m3": "*fp8e4nv", "e5m2": "*fp8e5", "e2m1": "*u8"}[f] for f in (fa, fb)] + ["*u8", "*u8", F, I32, I32, I32],
          dict(BM=128, BN=128, BK=128, FA=fa, FB=fb), ("gfx950",), warps=4)
case("double_dot", "double_dot", ["*fp64"] * 3 + [I32] * 3, dict(BM=32, BN=32, BK=16))
case("softmax_f32", "softmax", [F, F, I32, I32], dict(BLOCK=1024))
case("softmax_bf16", "softmax", [B, B, I32, I32], dict(BLOCK=4096), warps=8)
case("layernorm_bf16", "layernorm", [B, B, B, B, F, F, I32, "fp32"], dict(BLOCK=1024))
case("layernorm_f16_ragged", "layernorm", [H, H, H, H, F, F, I32, "fp32"], dict(BLOCK=256), aligned=False, warps=1)
case("scan_sort", "scan_sort", ["*i32", "*i32", F, "*i32"], dict(N=512))
case("histogram", "histogram", ["*i32", "*i32", I32], dict(BINS=64, BLOCK=1024))
case("random_uniform", "random_uniform", [F, "*i32", I32, I32], dict(BLOCK=1024))
case("elementwise", "elementwise", [F, F, F, "*i64", "*i64", I32], dict(BLOCK=512))
for dtype, t, archs in (("bf16", B, ALL), ("f16", H, ALL), ("e4m3", "*fp8e4nv", CDNA34), ("e5m2", "*fp8e5", ALL),
                        ("e4m3fnuz", "*fp8e4b8", CDNA34), ("e5m2fnuz", "*fp8e5b16", CDNA34)):
    case(f"convert_{dtype}", "convert", [F, t, F, I32], dict(BLOCK=1024), archs)
case("atomics", "atomics", [F, "*i32", F, "*i32", "*u32", F, "*i32", I32], dict(BLOCK=256))


def compile_case(folder, item):
    arch, name, kernel, types, constants, warps, stages, aligned = item
    fn = getattr(kernels, kernel)
    # Sizes are multiples of 16 unless said otherwise, as Triton's launcher would have found.
    sizes = [n for n, t in offline.arguments(fn, types, constants) if aligned and t[0] == "i" and n not in ("heads", "seed")]
    done = offline.compile_kernel(fn, types, constants, arch, sizes, num_warps=warps, num_stages=stages)
    return f"{arch}/{name}", offline.store(done, folder / arch / f"{name}.co", fn, types, constants, warps)


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "triton.json").write_text(json.dumps(dict(offline.in_parallel(compile_case, [(folder, item) for item in cases])), indent=1))


if __name__ == "__main__":
    main()
