"""Arrays in device memory, and what else can stand in for them: NumPy arrays, and DLPack producers."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple

import numpy as np

from . import dlpack, dtypes, native

if TYPE_CHECKING:
    from .core import Core


def dense_strides(sizes: Sequence[int], dtype: str) -> Tuple[int, ...]:
    """Row-major strides. Of e2m1x2 those of axes before the last one count bytes, pairs of values."""
    strides, step = [], 1
    for index, size in enumerate(reversed(sizes)):
        strides.append(step)
        step *= max(size, 1) // 2 if dtype == "e2m1x2" and index == 0 else max(size, 1)
    return tuple(reversed(strides))


class Memory:
    """A block of device memory, freed with its last user."""

    def __init__(self, handle: "Core", size: int):
        pointer = ctypes.c_void_p()
        native.check(native.library().flydsl_aot_device_malloc(handle.pointer, size, ctypes.byref(pointer)))
        self.pointer = pointer.value or 0
        self.bytes = size
        self.free = weakref.finalize(self, Memory._free, handle, self.pointer)
        handle.memories.add(self)

    @staticmethod
    def _free(handle: "Core", pointer: int) -> None:
        if pointer and not handle.closed:
            native.library().flydsl_aot_device_free(handle.pointer, pointer)


class DeviceArray:
    """An array in device memory: `sizes` and `strides` in elements, `dtype` by the library's name ("bf16", "e4m3", ...).

    `numpy()` copies it to the host. It exports DLPack: of a GPU as a ROCm device, of the emulator as host memory, without a
    copy. Work that was launched on it and has not finished is the reader's to wait for (`Handle.synchronize`); `numpy()` waits."""

    def __init__(self, handle: "Core", memory: Any, pointer: int, dtype: str, sizes: Sequence[int], strides: Sequence[int]):
        self.handle = handle
        self.memory = memory  # what keeps the memory alive
        self.dtype = dtype
        self.sizes = tuple(int(size) for size in sizes)
        self.strides = tuple(int(stride) for stride in strides)
        self.pointer = pointer

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.sizes

    @property
    def tensor(self) -> native.Tensor:
        """The view that the library takes."""
        return native.Tensor(self.pointer, self.dtype, self.sizes, self.strides)

    def permute(self, *axes: int) -> "DeviceArray":
        """The same memory with its axes in another order. (Of e2m1x2 the packed axis is the one with stride 1.)"""
        if sorted(axes) != list(range(len(self.sizes))):
            raise ValueError(f"axes are {axes}; an order of 0 to {len(self.sizes) - 1} is needed")
        return DeviceArray(self.handle, self.memory, self.pointer, self.dtype, [self.sizes[axis] for axis in axes],
                           [self.strides[axis] for axis in axes])

    @property
    def T(self) -> "DeviceArray":
        """The last two axes exchanged."""
        if len(self.sizes) < 2:
            raise ValueError(f"an array of sizes {self.sizes} has no two axes to exchange")
        order = list(range(len(self.sizes)))
        return self.permute(*order[:-2], order[-1], order[-2])

    def bits(self) -> np.ndarray:
        """A host copy of the stored elements, unsigned integers where NumPy lacks the type."""
        packed = self._packed_axis()
        sizes = [size // 2 if axis == packed else size for axis, size in enumerate(self.sizes)]
        kind = dtypes.storage(self.dtype)
        if 0 in sizes:
            return np.empty(sizes, kind)
        span = 1 + sum((size - 1) * stride for size, stride in zip(sizes, self.strides))
        host = np.empty(span, kind)
        self.handle.download(host, self.pointer)
        view = np.lib.stride_tricks.as_strided(host, sizes, [stride * kind.itemsize for stride in self.strides])
        return view.copy()

    def numpy(self) -> np.ndarray:
        """A host copy of the numbers: float32 for bf16 and types of 8 and 4 bits, which is exact."""
        packed = self._packed_axis()
        if packed is None:
            return dtypes.decode(self.bits(), self.dtype)
        return np.moveaxis(dtypes.decode(np.moveaxis(self.bits(), packed, -1), self.dtype), -1, packed)

    def _packed_axis(self) -> Optional[int]:
        if self.dtype != "e2m1x2":
            return None
        axes = [axis for axis, stride in enumerate(self.strides) if stride == 1]
        return axes[-1]

    def __dlpack_device__(self) -> Tuple[int, int]:
        return dlpack.device(self)

    def __dlpack__(self, **_options: Any) -> Any:
        return dlpack.export(self)

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}, sizes={self.sizes}, strides={self.strides})"


def empty(handle: "Core", sizes: Sequence[int], dtype: str) -> DeviceArray:
    """A dense array whose contents are undefined."""
    stored = math.prod(sizes) // (2 if dtype == "e2m1x2" else 1)
    memory = Memory(handle, stored * native.dtype_bytes(dtype))
    return DeviceArray(handle, memory, memory.pointer, dtype, sizes, dense_strides(sizes, dtype))


def upload(handle: "Core", array: Any, dtype: Optional[str] = None) -> DeviceArray:
    """A dense copy of a host array on the device. Without `dtype` in its own type; with it converted, except that unsigned
    integers of that type's size are taken as its bits."""
    array = np.asarray(array)
    if dtype is None:
        dtype = dtypes.name_of(array.dtype)
        stored = np.ascontiguousarray(array) if dtype in dtypes.NATIVE else np.ascontiguousarray(array).view(dtypes.storage(dtype))
    elif dtype not in dtypes.NATIVE and array.dtype == dtypes.storage(dtype):
        stored = np.ascontiguousarray(array)
    else:
        stored = dtypes.encode(array, dtype)
    sizes = list(stored.shape)
    if dtype == "e2m1x2":
        sizes[-1] *= 2
    result = empty(handle, sizes, dtype)
    handle.upload_to(result.pointer, stored)
    return result


def to_device(handle: "Core", value: Any) -> DeviceArray:
    """`value` as an operand: a DeviceArray as it is; a DLPack producer on the handle's device without a copy; else a copy of a
    host array."""
    if isinstance(value, DeviceArray):
        return value
    if isinstance(value, native.Tensor):
        return DeviceArray(handle, None, value.pointer, value.dtype, value.sizes, value.strides)
    if hasattr(value, "__dlpack_device__") and not isinstance(value, np.ndarray):
        if value.__dlpack_device__()[0] == dlpack.HOST:
            return dlpack.upload(handle, value)
        return dlpack.borrow(handle, value)
    return upload(handle, value)


def zeros(handle: "Core", sizes: Sequence[int], dtype: str) -> DeviceArray:
    """A dense array of zeros."""
    result = empty(handle, sizes, dtype)
    handle.upload_to(result.pointer, np.zeros(result.memory.bytes, np.uint8))
    return result
