"""Compiles PyTorch's FlyDSL kernels for gfx950: <name>.co and flydsl.json (symbol, compile-time parameters).

usage: compile_flydsl.py <folder holding the torch wheel's sources> <output folder> few|sweep
`few` are those that the tests run; `sweep` are the matrix products in all configurations that PyTorch's autotuner tries by default.
Needs the `flydsl` wheel and a ROCM_PATH with llvm/bin/ld.lld and amdgcn/bitcode; no device and no torch (torch_stub.py).
One process a core; each compiles its share of the cases.
"""
import contextlib
import io
import itertools
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import sys
import tempfile

import torch_stub

GEMM = ("tile_m", "tile_n", "tile_k", "stages", "m_waves", "n_waves", "group_m", "use_half_tile_interleaved")


def configuration(values):
    named = dict(zip(GEMM, values, strict=True))
    return named | dict(block=named["m_waves"] * named["n_waves"] * 64)


def gemm_case(name, dtype, config, a_t=False, b_t=False, tail=False, bias=False):
    return name, "gemm", dict(configuration(config), dtype=dtype, a_t=a_t, b_t=b_t, tail=tail, bias=bias)


def grouped_case(name, dtype, config):
    return name, "grouped_gemm", dict(configuration(config), dtype=dtype)


FEW = [
    *((f"rmsnorm_{dtype}_{n}", "rmsnorm", dict(dtype=dtype, n=n))
      for dtype, n in (("bf16", 4096), ("f16", 8192), ("f32", 12288), ("bf16", 4100), ("f16", 24576))),
    *((f"topk_register_{n}_{k}", "topk_register", dict(n=n, k=k, block=128)) for n, k in ((1024, 4), (2048, 8), (8192, 16), (1024, 2))),
    *((f"topk_radix_{n}_{k}_{'det' if det else 'any'}", "topk_radix",
       dict(n=n, k=k, deterministic=det, block=max(1 << (k - 1).bit_length(), 256)))
      for n, k, det in ((8192, 64, True), (8192, 64, False), (16384, 300, True), (32768, 1000, False))),
    gemm_case("gemm_bf16_128x128x64_nn", "bf16", (128, 128, 64, 2, 4, 4, 0, False)),
    gemm_case("gemm_bf16_64x64x64_nt_tail", "bf16", (64, 64, 64, 2, 2, 2, 0, False), b_t=True, tail=True),
    gemm_case("gemm_bf16_16x64x128_nt", "bf16", (16, 64, 128, 3, 1, 4, 4, False), b_t=True),
    gemm_case("gemm_bf16_64x64x64_tn", "bf16", (64, 64, 64, 6, 4, 2, 4, False), a_t=True),
    gemm_case("gemm_f16_128x64x64_tt", "f16", (128, 64, 64, 2, 4, 2, 0, False), a_t=True, b_t=True),
    gemm_case("gemm_bf16_hti_256x256x64_nn", "bf16", (256, 256, 64, 2, 2, 4, 4, True)),
    gemm_case("gemm_f16_hti_128x128x64_nt", "f16", (128, 128, 64, 2, 2, 2, 0, True), b_t=True),
    gemm_case("gemm_mxfp8_128x128x128_nt", "mxfp8", (128, 128, 128, 2, 2, 2, 0, False), b_t=True),
    gemm_case("gemm_mxfp8_64x64x512_nn", "mxfp8", (64, 64, 512, 2, 2, 2, 0, False)),
    gemm_case("gemm_mxfp4_128x128x256_nt_bias", "mxfp4", (128, 128, 256, 2, 2, 2, 0, False), b_t=True, bias=True),
    gemm_case("gemm_mxfp4_32x64x512_nt", "mxfp4", (32, 64, 512, 2, 1, 2, 0, False), b_t=True),
    gemm_case("gemm_mxfp8_hti_256x256x128_nt", "mxfp8", (256, 256, 128, 2, 2, 4, 4, True), b_t=True),
    gemm_case("gemm_mxfp4_hti_256x256x256_nt", "mxfp4", (256, 256, 256, 2, 2, 4, 0, True), b_t=True),
    grouped_case("grouped_bf16_64x128x64", "bf16", (64, 128, 64, 2, 2, 4, 0, False)),
    grouped_case("grouped_f16_hti_128x128x64", "f16", (128, 128, 64, 2, 2, 2, 0, True)),
    *((f"grouped_mxfp8_{r}x{c}_{'persistent' if persistent else 'single'}", "grouped_mxfp8",
       dict(k=512, n=256, e=4, block_r=r, block_c=c, persistent=persistent, block=256))
      for r, c, persistent in ((64, 128, True), (256, 256, False))),
]
# (rows of all groups, N, K, groups) of benchmarks/grouped_gemm.txt: N, K and groups are compiled into the MXFP8 kernel; the tile, and whether the kernel is
# persistent, PyTorch makes depend on the number of rows, too.
MXFP8_GROUPED = (
    (32768, 4096, 7168, 4), (32768, 7168, 2048, 4), (32768, 4096, 7168, 8), (8192, 4096, 7168, 8), (8192, 7168, 2048, 8), (1024, 4096, 7168, 8),
    (16384, 28672, 4096, 8), (32768, 3072, 4096, 128), (32768, 4096, 1536, 128), (65536, 1536, 2048, 128), (8192, 2048, 768, 128), (8192, 16384, 5120, 16))
COMPUTE_UNITS = 256


def name_of(dtype, layout, config):
    interleaved = "hti_" if config[-1] else ""
    return f"{dtype}_{interleaved}{layout}_" + "_".join(map(str, config[:-1]))


def sweep():
    from torch._inductor.heuristics.template import flydsl as lists

    def in_order(found):
        return [tuple(getattr(config, key.upper()) for key in GEMM) for config in found]

    for layout in ("nn", "nt"):
        for config in in_order(lists.get_default_gemm_configs()):
            yield gemm_case(f"gemm_{name_of('bf16', layout, config)}", "bf16", config, b_t=layout == "nt")
    for dtype in ("mxfp8", "mxfp4"):
        for config in in_order(lists._get_mxfp_candidates(dtype, False)):
            yield gemm_case(f"gemm_{name_of(dtype, 'nt', config)}", dtype, config, b_t=True)
    for config in in_order(lists.get_default_grouped_gemm_configs()):
        yield grouped_case(f"grouped_{name_of('bf16', 'nn', config)}", "bf16", config)
    from torch._inductor.kernel.vendored_templates.flydsl.kernels import mxfp8_grouped_gemm_gfx950 as grouped

    picked = set()
    for m, n, k, groups in MXFP8_GROUPED:
        rows, columns = grouped.pick_tile(m, groups, n, COMPUTE_UNITS)
        nonempty = min(groups, m)
        picked.add((k, n, groups, rows, columns, (nonempty + (m - nonempty) // rows) * -(-n // columns) > COMPUTE_UNITS))
    for k, n, groups, rows, columns, persistent in sorted(picked):
        yield (f"grouped_mxfp8_k{k}_n{n}_e{groups}_{rows}x{columns}_{'persistent' if persistent else 'single'}", "grouped_mxfp8",
               dict(k=k, n=n, e=groups, block_r=rows, block_c=columns, persistent=persistent, block=256))


TARGET = ("gfx950", "rocm", 0)


def dynamic(tensor):
    import flydsl.compiler as flyc

    return flyc.from_torch_tensor(tensor).mark_layout_dynamic()


def tensors(torch, dtype):
    """make(shape, strides) of one element type; the MX formats travel as bytes."""
    made = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}.get(dtype, torch.uint8)
    return lambda shape, strides=None, dt=made: torch_stub.Tensor(shape, dt, strides)


def compile_rmsnorm(torch, p):
    from torch._native.ops.norm import flydsl_rmsnorm_fwd as rmsnorm

    make, n = tensors(torch, p["dtype"]), p["n"]
    p["block"] = rmsnorm._forward_block_threads(n)
    rmsnorm._compile_rmsnorm_fwd(n, p["dtype"], *TARGET, compile_args=(
        make((4, n)), make((n,)), make((4, n)), make((4,), dt=torch.float32), 4, 1e-6, 0))


def topk_arguments(torch, p):
    make = tensors(torch, "f32")
    return make((4, p["n"])), make((4, p["k"])), make((4, p["k"]), dt=torch.int64), 4, 0


def compile_topk_register(torch, p):
    from torch._native.ops.topk import flydsl_kernels as topk

    topk._compile_register_topk(p["n"], p["k"], *TARGET, compile_args=topk_arguments(torch, p))


def compile_topk_radix(torch, p):
    from torch._native.ops.topk import flydsl_kernels as topk

    topk._compile_radix_select_topk(p["n"], p["k"], p["deterministic"], *TARGET, compile_args=topk_arguments(torch, p))


def gemm_parameters(p):
    from torch._inductor.kernel.vendored_templates.flydsl.kernels import gemm_gfx950 as gemm

    ids = dict(bf16=gemm.GEMM_DTYPE_BF16, f16=gemm.GEMM_DTYPE_FP16, mxfp8=gemm.GEMM_DTYPE_MXFP8, mxfp4=gemm.GEMM_DTYPE_MXFP4)
    return gemm, gemm.make_gemm_gfx950_param(
        dtype_id=ids[p["dtype"]], a_is_transposed=p.get("a_t", False), b_is_transposed=p.get("b_t", False), has_bias=p.get("bias", False),
        has_k_tail=p.get("tail", False), **{key: p[key] for key in GEMM})


def compile_gemm(torch, p):
    import flydsl.compiler as flyc

    gemm, parameters = gemm_parameters(p)
    make, mx = tensors(torch, p["dtype"]), p["dtype"].startswith("mx")
    m, n, k = 256, 256, 1024
    kk = k // 2 if p["dtype"] == "mxfp4" else k  # bytes hold two FP4
    a = dynamic(make((m, kk), (1, m) if p["a_t"] else None))
    b = dynamic(make((kk, n), (1, kk) if p["b_t"] else None))
    if not mx:
        return flyc.compile(gemm.gemm_gfx950, dynamic(make((m, n))), a, b, parameters, 0)
    scales = [dynamic(make((rows, k // 32))) for rows in (m, n)]
    out = dynamic(make((m, n), dt=torch.bfloat16))
    bias = dynamic(make((n,), dt=torch.bfloat16)) if p["bias"] else out
    flyc.compile(gemm.gemm_mxfp_gfx950, out, a, b, *scales, bias, parameters, 0)


def compile_grouped_gemm(torch, p):
    import flydsl.compiler as flyc
    import flydsl.expr as fx
    from torch._inductor.kernel.vendored_templates.flydsl.kernels import grouped_gemm_gfx950 as grouped

    make = tensors(torch, p["dtype"])
    flyc.compile(grouped.launch_gemm_gfx950_grouped, dynamic(make((256, 256))), dynamic(make((256, 256))), dynamic(make((4, 256, 256))),
                 dynamic(make((4,), dt=torch.int32)), fx.Int32(4), fx.Int32(256), fx.Int32(256), 1, gemm_parameters(p)[1], 0)


def compile_grouped_mxfp8(torch, p):
    import flydsl.compiler as flyc
    from torch._inductor.kernel.vendored_templates.flydsl.kernels import mxfp8_grouped_gemm_gfx950 as grouped

    k, n, e, m = p["k"], p["n"], p["e"], 300

    def flat(size, dt):
        return dynamic(torch_stub.Tensor((size,), dt))

    flyc.compile(grouped.cached_launch(k, n, e, p["block_c"], p["block_r"], p["persistent"]),
                 flat(m * k, torch.int8), flat(e * n * k, torch.int8), flat(m * n, torch.bfloat16), flat(m * k // 32, torch.uint8),
                 flat(e * n * k // 32, torch.uint8), flat(e, torch.int32), 1, 1, m, n, 0)


def embedded_object(text):
    """The bytes of the ELF that the last pass wrote into `gpu.binary` as an MLIR string."""
    start = text.index('"\\7FELF') + 1
    end = start
    while text[end] != '"':
        end += 3 if text[end] == "\\" and text[end + 1] not in '\\"' else 2 if text[end] == "\\" else 1
    raw = text[start:end].encode("latin-1")
    return re.sub(rb"\\([0-9A-Fa-f]{2}|[\\\"nt])",
                  lambda m: {b"\\": b"\\", b'"': b'"', b"n": b"\n", b"t": b"\t"}.get(m[1]) or bytes([int(m[1], 16)]), raw)


def compile_case(item):
    name, op, parameters = item
    folder, dump = (pathlib.Path(os.environ[key]) for key in ("PEERS_OUTPUT", "FLYDSL_DUMP_DIR"))
    shutil.rmtree(dump, ignore_errors=True)
    with contextlib.redirect_stdout(io.StringIO()):  # FlyDSL names every file that it dumps
        globals()[f"compile_{op}"](sys.modules["torch"], parameters)
    (stages,) = dump.iterdir()
    text = next(stages.glob("*gpu_module_to_binary.mlir")).read_text(encoding="latin-1")
    (folder / f"{name}.co").write_bytes(embedded_object(text))
    signature = re.search(r"!llvm.func<void \((.*?)\)>, meta", text)[1]
    return name, dict(parameters, op=op, symbol=stages.name, signature=signature)


def swept():
    return list(sweep())


def start_worker(sources, temporary):
    """FlyDSL reads its environment when it is imported: each worker sets its own before that."""
    os.environ |= dict(COMPILE_ONLY="1", ARCH="gfx950", FLYDSL_GPU_ARCH="gfx950", FLYDSL_DUMP_IR="1", FLYDSL_RUNTIME_ENABLE_CACHE="0",
                       FLYDSL_DUMP_DIR=f"{temporary}/{os.getpid()}")
    torch_stub.install(sources)


def main():
    sources, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PEERS_OUTPUT"] = str(folder)
    with tempfile.TemporaryDirectory(prefix="flydsl-dump-") as temporary:
        with multiprocessing.get_context("fork").Pool(initializer=start_worker, initargs=(sources, temporary)) as pool:
            cases = FEW if sys.argv[3] == "few" else pool.apply(swept)
            index = dict(pool.map(compile_case, cases, chunksize=1))
    (folder / "flydsl.json").write_text(json.dumps(index, indent=1))


if __name__ == "__main__":
    main()
