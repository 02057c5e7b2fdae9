"""Ahead-of-time compiled attention, matrix product, norm and TopK kernels for AMD GPUs, from Python.

    import numpy as np
    import flydsl_aot

    library = flydsl_aot.open(device="emulator")            # "hip" on a machine with an AMD GPU
    q = library.upload(np.random.randn(1, 2, 64, 64), "bf16")
    result = library.attention_forward(q, q, q, mask=flydsl_aot.causal("top-left"), lse=True)
    print(result.out.numpy(), library.info())

A thin layer over the C ABI (include/flydsl_aot): no compiler, ROCm or LLVM is needed to import it, to ask for a kernel
(`open(device="none", arch="gfx950").query(...)`), or to run it beside a HIP runtime. The headers are the reference for shapes, rules
and error bounds. Errors are exceptions, one class for each family of statuses."""

from __future__ import annotations

from . import _layout, native
from .arrays import DeviceArray
from .attention import AttentionGradients, AttentionResult, Mask, causal
from .core import Candidate, Info, Query, shape
from .errors import ArchiveError, DeviceError, Error, HostError, InvalidArgument, Unsupported
from .handle import Handle
from .native import Tensor
from .products import GemmResult, Quantised
from .rows import NormGradients, NormResult, TopK

open = Handle  # flydsl_aot.open(...) reads as what it does
__version__ = f"{_layout.VERSION // 10000}.{_layout.VERSION // 100 % 100}.{_layout.VERSION % 100}"


def library_path() -> str:
    """The file of the library in use; loads it. OSError where there is none."""
    return native.library()._name


def prefix() -> str:
    """The folder with the library's lib and include, for CMAKE_PREFIX_PATH; OSError where the library is not part of a package."""
    for path in native.prefixes():
        if (path / "include" / "flydsl_aot").is_dir():
            return str(path)
    raise OSError("the headers are not beside this package")


__all__ = ["ArchiveError", "AttentionGradients", "AttentionResult", "Candidate", "DeviceArray", "DeviceError", "Error", "GemmResult",
           "Handle", "HostError", "Info", "InvalidArgument", "Mask", "NormGradients", "NormResult", "Quantised", "Query", "Tensor",
           "TopK", "Unsupported", "causal", "library_path", "open", "prefix", "shape"]
