"""libflydsl_aot.so by ctypes: finding it, its functions, and its structs as the generated layout says."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import struct
from typing import Any, Callable, Dict, Mapping, NamedTuple, Sequence, Tuple

from . import _layout
from .errors import error_of

_TENSOR = struct.Struct(f"<Qii{_layout.MAX_RANK}q{_layout.MAX_RANK}q")
_FORMATS = {"f32": "<f", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q", "in64": "<Q", "out64": "<Q", "pointer": "<Q"}
_SONAME = f"libflydsl_aot.so.{_layout.VERSION // 10000}"

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Tensor(NamedTuple):
    """A strided view of device memory as the library takes it. Sizes and strides count elements (of e2m1x2: fp4 values, and
    bytes on all axes but the packed one). The memory is the caller's and stays valid until the stream has passed the call."""

    pointer: int
    dtype: str
    sizes: Tuple[int, ...]
    strides: Tuple[int, ...]


def _places() -> Sequence[str]:
    named = os.environ.get("FLYDSL_AOT_LIBRARY")
    if named:
        return [named]
    return [str(path / "lib" / _SONAME) for path in prefixes() if (path / "lib" / _SONAME).exists()] + [_SONAME]


def prefixes() -> Sequence[pathlib.Path]:
    """Where bin, lib and include may lie: in the package (a wheel), or two folders above it (a tarball)."""
    package = pathlib.Path(__file__).resolve().parent
    return [package, package.parent.parent]


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, loaded on first use: the file that FLYDSL_AOT_LIBRARY names, else `lib/` in this package or two folders
    above it, else by the loader's own search. Raises OSError where there is none, or where it is of another version."""
    tried = []
    for place in _places():
        try:
            found = ctypes.CDLL(place)
            break
        except OSError as reason:
            tried.append(str(reason))
    else:
        raise OSError(f"libflydsl_aot was not found ({'; '.join(tried)}); FLYDSL_AOT_LIBRARY names the file to open")
    found.flydsl_aot_version.restype = ctypes.c_uint32
    version = found.flydsl_aot_version()
    if version // 100 != _layout.VERSION // 100:
        raise OSError(f"{place} has version {version}, this binding was made for {_layout.VERSION} (major * 10000 + minor * 100 + patch)")
    for name in ("status_name", "status_string", "last_error", "dtype_name"):
        getattr(found, f"flydsl_aot_{name}").restype = ctypes.c_char_p
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    found.flydsl_aot_open.argtypes = [pointer, pointer]
    found.flydsl_aot_close.argtypes = [pointer]
    found.flydsl_aot_close.restype = None
    found.flydsl_aot_get_info.argtypes = [pointer, pointer]
    found.flydsl_aot_device_malloc.argtypes = [pointer, size, pointer]
    found.flydsl_aot_device_free.argtypes = [pointer, pointer]
    found.flydsl_aot_device_upload.argtypes = [pointer, pointer, pointer, size]
    found.flydsl_aot_device_download.argtypes = [pointer, pointer, pointer, size]
    found.flydsl_aot_device_synchronize.argtypes = [pointer]
    for operator in _layout.PARAMETERS:
        getattr(found, f"flydsl_aot_{operator}").argtypes = [pointer, pointer, pointer]
        getattr(found, f"flydsl_aot_{operator}_query").argtypes = [pointer, pointer, pointer]
        getattr(found, f"flydsl_aot_{operator}_prefetch").argtypes = [pointer, pointer]
        getattr(found, f"flydsl_aot_{operator}_explain").argtypes = [pointer, pointer, _CALLBACK, pointer]
    return found


@functools.lru_cache(maxsize=None)
def function(name: str) -> Any:
    """A function of the library by its name without prefix."""
    return getattr(library(), f"flydsl_aot_{name}")


def check(status: int) -> None:
    """Raises the exception of a status that is not 0, with the thread's last message."""
    if status:
        text = library().flydsl_aot_last_error().decode()
        raise error_of(status, status_name(status), text)


def status_name(status: int) -> str:
    """The enumerator's name without its prefix, e.g. "UNSUPPORTED_DTYPE"."""
    return library().flydsl_aot_status_name(status).decode()


def _pack_tensor(buffer: Any, offset: int, value: Tensor, name: str) -> None:
    rank = len(value.sizes)
    if rank > _layout.MAX_RANK or rank != len(value.strides):
        raise ValueError(f"{name}: sizes {value.sizes} and strides {value.strides}; at most {_layout.MAX_RANK} of each, as many of both")
    padding = (0,) * (_layout.MAX_RANK - rank)
    _TENSOR.pack_into(buffer, offset, value.pointer, _layout.DTYPES[value.dtype], rank, *value.sizes, *padding, *value.strides, *padding)


def parameters(operator: str, fields: Mapping[str, Any]) -> ctypes.Array:
    """The parameter struct of an operator, filled from `fields`: names of include/flydsl_aot/fields.h (and `workspace`,
    `workspace_bytes`) with Tensors, numbers and, for pointers, addresses. None is absent. TypeError names an unknown field."""
    size, layout = _layout.PARAMETERS[operator]
    buffer = ctypes.create_string_buffer(size)
    struct.pack_into("<I", buffer, 0, size)
    for name, value in fields.items():
        if value is None:
            continue
        if name not in layout:
            raise TypeError(f"{operator} has no field {name!r}; it has {', '.join(layout)}")
        kind, offset = layout[name]
        if kind == "tensor":
            _pack_tensor(buffer, offset, value, name)
        else:
            try:
                struct.pack_into(_FORMATS[kind], buffer, offset, value)
            except struct.error as reason:
                raise ValueError(f"{operator}: {name} = {value!r}: {reason}") from None
    return buffer


def set_workspace(operator: str, buffer: Any, address: int, size: int) -> None:
    """Adds a workspace to a parameter struct."""
    layout = _layout.PARAMETERS[operator][1]
    struct.pack_into("<Q", buffer, layout["workspace"][1], address)
    struct.pack_into("<Q", buffer, layout["workspace_bytes"][1], size)


def workspace_bytes(result: Any) -> int:
    """That field of a query's result."""
    return struct.unpack_from("<Q", result, _layout.STRUCTS["query_result"][1]["workspace_bytes"][1])[0]


def filled(name: str, fields: Mapping[str, Any]) -> Tuple[ctypes.Array, list]:
    """One of the other structs, zero but for `fields`, and the objects that its strings point to."""
    size, layout = _layout.STRUCTS[name]
    buffer = ctypes.create_string_buffer(size)
    struct.pack_into("<I", buffer, 0, size)
    kept = []
    for field, value in fields.items():
        kind, offset = layout[field]
        if kind == "string":
            if value is None:
                continue
            text = ctypes.create_string_buffer(os.fsencode(value))
            kept.append(text)
            struct.pack_into("<Q", buffer, offset, ctypes.addressof(text))
        else:
            struct.pack_into(_FORMATS[kind], buffer, offset, value)
    return buffer, kept


def read(name: str, address: int) -> Dict[str, Any]:
    """The fields of one of the other structs at an address."""
    size, layout = _layout.STRUCTS[name]
    data = ctypes.string_at(address, size)
    values: Dict[str, Any] = {}
    for field, (kind, offset) in layout.items():
        if kind == "string":
            text = struct.unpack_from("<Q", data, offset)[0]
            values[field] = ctypes.string_at(text).decode(errors="replace") if text else ""
        elif kind == "array":
            values[field] = data[offset:].split(b"\0", 1)[0].decode(errors="replace")
        else:
            values[field] = struct.unpack_from(_FORMATS[kind], data, offset)[0]
    return values


def callback(collect: Callable[[Dict[str, Any]], None]) -> Any:
    """A C callback that hands each candidate to `collect`."""
    return _CALLBACK(lambda _user, candidate: collect(read("candidate", candidate)))


def dtype_bytes(dtype: str) -> int:
    """Bytes of one stored element (of e2m1x2: of a pair)."""
    return _DTYPE_BYTES[dtype]


_DTYPE_BYTES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1, "e4m3_fnuz": 1, "e5m2_fnuz": 1, "e8m0": 1,
                "e2m1x2": 1, "int32": 4, "int64": 8, "bool": 1}


def lookup(table: Mapping[str, int], value: str, what: str) -> int:
    """The number of a name; ValueError lists the names there are."""
    if value not in table:
        raise ValueError(f"{what} is {value!r}; it may be {', '.join(repr(name) for name in table)}")
    return table[value]
