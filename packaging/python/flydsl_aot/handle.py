"""The library with its operators as typed methods."""

from __future__ import annotations

from .attention import AttentionOperators
from .products import ProductOperators
from .rows import RowOperators


class Handle(AttentionOperators, ProductOperators, RowOperators):
    """The library, opened. Any thread may call its operators at any time; `close` may not run beside them.

    device: "hip", "emulator", "none" (queries only, for `arch`) or None: the environment's FLYDSL_AOT_DEVICE, else "hip".
    arch: e.g. "gfx950"; required with "none". archive_path: a .fda file or a folder of them; default FLYDSL_AOT_ARCHIVE_PATH,
    else beside the library. device_library: the runtime to open. max_loaded_kernels: 0 is no limit. jit: "on" or "off", whether
    kernels that the archive lacks may be compiled (library.h); default FLYDSL_AOT_JIT, else off. force_kernel, backends: names with
    commas. Raises ArchiveError, DeviceError, Unsupported (no archive for the device), InvalidArgument, or OSError where the
    library itself is not there."""
