"""A stand-in for `torch` that is just large enough to import PyTorch's FlyDSL kernel files and describe tensors to the compiler.

The kernel files need tensor metadata (shape, strides, dtype) and never touch data in COMPILE_ONLY mode, so importing
the 1 GB library and its CUDA dependencies is not needed. `install(root)` puts this module in place of torch and
makes the packages below `root`/torch importable without running their own __init__ files.
"""
import contextlib
import pathlib
import sys
import types


class dtype:
    def __init__(self, name, itemsize):
        self.name, self.itemsize = name, itemsize

    def __repr__(self):
        return f"torch.{self.name}"


class Tensor:
    def __init__(self, shape, dt, strides=None):
        self.shape, self.dtype = tuple(shape), dt
        if strides is None:
            strides, run = [], 1
            for extent in reversed(self.shape):
                strides.insert(0, run)
                run *= extent
        self._strides = tuple(strides)
        self.device = types.SimpleNamespace(type="cpu", index=0)

    def stride(self):
        return self._strides

    def element_size(self):
        return self.dtype.itemsize

    def data_ptr(self):
        return 0


class _Stream:
    cuda_stream = 0


def install(root):
    torch = types.ModuleType("torch")
    torch.__path__ = [str(pathlib.Path(root) / "torch")]
    for name, size in dict(float16=2, bfloat16=2, float32=4, float64=8, bool=1, uint8=1, int8=1, int16=2, int32=4, int64=8,
                           float8_e5m2=1, float8_e4m3fn=1, float8_e5m2fnuz=1, float8_e4m3fnuz=1).items():
        setattr(torch, name, dtype(name, size))
    torch.dtype, torch.Tensor = dtype, Tensor
    torch.cuda = types.SimpleNamespace(Stream=_Stream, is_available=lambda: False, device=lambda *_: contextlib.nullcontext(),
                                       current_stream=lambda *_: 0)
    torch._C = types.SimpleNamespace(_is_cow_tensor=lambda _: False)
    torch.version = types.SimpleNamespace(hip=None)
    sys.modules["torch"] = torch
    for package in ("_native", "_native.ops", "_native.ops.norm", "_native.ops.topk", "_native.flydsl", "_inductor",
                    "_inductor.runtime", "_inductor.heuristics", "_inductor.heuristics.template", "_inductor.kernel",
                    "_inductor.kernel.vendored_templates", "_inductor.kernel.vendored_templates.flydsl"):
        module = types.ModuleType("torch." + package)
        module.__path__ = [str(pathlib.Path(root) / "torch" / package.replace(".", "/"))]
        sys.modules["torch." + package] = module
    identity = types.ModuleType("torch._native.instrumentation")
    identity.instrumented_flydsl_cache = lambda *_, **__: (lambda function: function)
    sys.modules["torch._native.instrumentation"] = identity
    utils = types.ModuleType("torch._native.flydsl_utils")
    utils._resolve_rocm_arch = lambda _: None
    sys.modules["torch._native.flydsl_utils"] = utils
    cache = types.ModuleType("torch._inductor.runtime.flydsl_cache")
    cache.run_cached_flydsl = None
    sys.modules["torch._inductor.runtime.flydsl_cache"] = cache
    config = types.ModuleType("torch._inductor.config")
    sys.modules["torch._inductor.config"] = sys.modules["torch._inductor"].config = config
    return torch
