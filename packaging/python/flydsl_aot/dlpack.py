"""DLPack (github.com/dmlc/dlpack, ABI 0.8) by ctypes: arrays of other packages without copies, both ways."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Tuple

import numpy as np

if TYPE_CHECKING:
    from .arrays import DeviceArray
    from .core import Core

HOST, CUDA, ROCM = 1, 2, 10
_NAME = b"dltensor"
_USED = b"used_dltensor"

# Type code and bits of each element type. DLPack 1.0 gave the small ones codes of their own; 4-bit types have no common form.
_CODES = {"fp64": (2, 64), "fp32": (2, 32), "fp16": (2, 16), "bf16": (4, 16), "int32": (0, 32), "int64": (0, 64), "bool": (6, 8),
          "e4m3": (10, 8), "e4m3_fnuz": (11, 8), "e5m2": (12, 8), "e5m2_fnuz": (13, 8), "e8m0": (14, 8)}
_NAMES = {code: name for name, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]

_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR]
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_get_pointer = _api.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
_set_name = _api.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]

_exported: Dict[int, Tuple[Any, ...]] = {}  # address of an exported struct -> what it points to


def _forget(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


def _drop_unused(capsule: int) -> None:
    # A capsule that a consumer took is renamed; the tensor is then the consumer's to delete.
    if _is_valid(capsule, _NAME):
        _exported.pop(_get_pointer(capsule, _NAME), None)


_forget_callback = _DELETER(_forget)
_drop_callback = _DESTRUCTOR(_drop_unused)


def device(array: "DeviceArray") -> Tuple[int, int]:
    """(device type, index). The emulator's device memory is host memory."""
    return (HOST if array.handle.emulated else ROCM), 0


def export(array: "DeviceArray") -> Any:
    """A capsule "dltensor" that shares the array's memory."""
    if array.dtype not in _CODES:
        raise BufferError(f"DLPack has no type for {array.dtype}; bits() copies its bytes")
    if array.handle.emulated:
        array.handle.synchronize()
    rank = len(array.sizes)
    shape, strides = (ctypes.c_int64 * rank)(*array.sizes), (ctypes.c_int64 * rank)(*array.strides)
    kind, index = device(array)
    code, bits = _CODES[array.dtype]
    managed = _Managed(_Tensor(array.pointer, kind, index, rank, code, bits, 1, shape, strides, 0), None, _forget_callback)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, strides, array)
    return _api.PyCapsule_New(address, _NAME, _drop_callback)


class _Borrowed:
    """Keeps a foreign tensor until no array refers to it."""

    def __init__(self, managed: Any):
        self.managed = managed

    def __del__(self) -> None:
        if self.managed.contents.deleter:
            self.managed.contents.deleter(self.managed)


def _take(value: Any) -> Any:
    capsule = value.__dlpack__()
    address = id(capsule)
    pointer = ctypes.cast(_get_pointer(address, _NAME), ctypes.POINTER(_Managed))
    _set_name(address, _USED)
    return _Borrowed(pointer)


def _describe(tensor: _Tensor) -> Tuple[str, Tuple[int, ...], Tuple[int, ...], int]:
    key = (tensor.code, tensor.bits)
    if key not in _NAMES or tensor.lanes != 1:
        raise TypeError(f"DLPack type (code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) is none of the library's")
    sizes = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim))
    else:
        dense, step = [], 1
        for size in reversed(sizes):
            dense.append(step)
            step *= max(size, 1)
        strides = tuple(reversed(dense))
    return _NAMES[key], sizes, strides, (tensor.data or 0) + tensor.byte_offset


def borrow(handle: "Core", value: Any) -> "DeviceArray":
    """An array over a producer's device memory, kept alive with it."""
    from .arrays import DeviceArray

    kind = value.__dlpack_device__()[0]
    if kind not in (ROCM, CUDA) or handle.emulated:
        raise TypeError(f"a DLPack array on device type {kind} cannot be used on {handle.info().device}: copy it to the host first")
    owner = _take(value)
    dtype, sizes, strides, pointer = _describe(owner.managed.contents.tensor)
    return DeviceArray(handle, owner, pointer, dtype, sizes, strides)


def upload(handle: "Core", value: Any) -> "DeviceArray":
    """A dense copy of a producer's host memory."""
    from . import arrays, dtypes

    owner = _take(value)
    dtype, sizes, strides, pointer = _describe(owner.managed.contents.tensor)
    kind = dtypes.storage(dtype)
    if 0 in sizes:
        return arrays.empty(handle, sizes, dtype)
    span = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * (span * kind.itemsize)).from_address(pointer))
    view = np.lib.stride_tricks.as_strided(memory.view(kind), sizes, [stride * kind.itemsize for stride in strides])
    stored = np.ascontiguousarray(view)
    return arrays.upload(handle, stored, None if dtype in dtypes.NATIVE else dtype)
