"""A small HIP client over ctypes: memory, modules, launches. The library's path is the only thing that knows of an emulator."""
import ctypes
import struct

import numpy as np

from launch import judge
from launch.code_object import kernel_metadata

POISON = 0xA5  # what every buffer holds before a kernel writes it; as float32 -2.9e-16, as bf16 the same
GUARD = 256


class HipError(RuntimeError):
    pass


class Hip:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.hipGetErrorString.restype = ctypes.c_char_p
        self.buffers = []
        self.call("hipInit", ctypes.c_uint(0))
        self.call("hipSetDevice", ctypes.c_int(0))

    def call(self, name, *args):
        rc = getattr(self.lib, name)(*args)
        if rc:
            raise HipError(f"{name}: {rc} {self.lib.hipGetErrorString(rc).decode()}")

    def buffer(self, what, size=None):
        """A device buffer: from an array (copied in), or `what` = dtype and `size` = shape (poisoned)."""
        made = Buffer(self, what, size)
        self.buffers.append(made)
        return made

    def memory(self, size):
        """Device memory whose contents do not matter: nothing is copied, pages that no kernel touches cost nothing."""
        return Memory(self, size)

    def check_guards(self):
        for made in self.buffers:
            made.check_guards()

    def load(self, path, symbol=None):
        module = ctypes.c_void_p()
        self.call("hipModuleLoad", ctypes.byref(module), str(path).encode())
        meta = kernel_metadata(path, symbol)
        function = ctypes.c_void_p()
        self.call("hipModuleGetFunction", ctypes.byref(function), module, meta[".name"].encode())
        return Kernel(self, function, meta)


class Memory:
    def __init__(self, hip, size):
        self.base = ctypes.c_void_p()
        self.hip = hip
        hip.call("hipMalloc", ctypes.byref(self.base), ctypes.c_size_t(size))
        self.address = self.base.value

    def write(self, array, offset=0):
        raw = array.tobytes()
        self.hip.call("hipMemcpy", ctypes.c_void_p(self.address + offset), raw, ctypes.c_size_t(len(raw)), ctypes.c_int(1))


class Buffer:
    def __init__(self, hip, what, size):
        self.hip = hip
        self.array = np.ascontiguousarray(what) if size is None else np.frombuffer(
            bytes([POISON]) * (int(np.prod(size)) * np.dtype(what).itemsize), what).reshape(size)
        self.base = ctypes.c_void_p()
        whole = bytes([POISON]) * GUARD + self.array.tobytes() + bytes([POISON]) * GUARD
        hip.call("hipMalloc", ctypes.byref(self.base), ctypes.c_size_t(len(whole)))
        hip.call("hipMemcpy", self.base, whole, ctypes.c_size_t(len(whole)), ctypes.c_int(1))
        self.address = self.base.value + GUARD

    def _whole(self):
        raw = ctypes.create_string_buffer(self.array.nbytes + 2 * GUARD)
        self.hip.call("hipMemcpy", raw, self.base, ctypes.c_size_t(len(raw)), ctypes.c_int(2))
        return raw.raw

    def read(self):
        return np.frombuffer(self._whole()[GUARD:GUARD + self.array.nbytes], self.array.dtype).reshape(self.array.shape)

    def check_guards(self):
        raw = self._whole()
        for place, part in (("before", raw[:GUARD]), ("after", raw[-GUARD:])):
            if part != bytes([POISON]) * GUARD:
                raise judge.Wrong(f"a kernel wrote {place} a buffer of shape {self.array.shape}")


class Kernel:
    def __init__(self, hip, function, meta):
        self.hip, self.function, self.meta = hip, function, meta

    def _go(self, grid, block, shared, params, extra):
        grid, block = (tuple(grid) + (1, 1))[:3], (tuple(block) + (1, 1))[:3]
        self.hip.call("hipModuleLaunchKernel", self.function, *map(ctypes.c_uint, grid), *map(ctypes.c_uint, block),
                      ctypes.c_uint(shared), None, params, extra)
        self.hip.call("hipDeviceSynchronize")

    def launch_buffer(self, grid, block, kernarg, shared=0):
        """Arguments as one block of bytes (HIP_LAUNCH_PARAM_BUFFER_POINTER)."""
        raw = ctypes.create_string_buffer(kernarg, len(kernarg))
        size = ctypes.c_size_t(len(kernarg))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(raw), 2, ctypes.addressof(size), 3)
        self._go(grid, block, shared, None, extra)

    def launch_params(self, grid, block, arguments, shared=0):
        """Arguments one by one (kernelParams), each already packed to bytes."""
        raw = [ctypes.create_string_buffer(a, len(a)) for a in arguments]
        params = (ctypes.c_void_p * len(raw))(*(ctypes.addressof(r) for r in raw))
        self._go(grid, block, shared, params, None)

    def launch_named(self, grid, block, values, shared=0):
        """A block of bytes filled by the argument names in the metadata; a name not given stays zero, an unknown one fails."""
        kernarg = bytearray(self.meta[".kernarg_segment_size"])
        names = {a[".name"]: a for a in self.meta[".args"] if not a.get(".name", "pad").startswith("pad")}
        unknown = set(values) - set(names)
        if unknown:
            raise KeyError(f"{self.meta['.name']} has no arguments {sorted(unknown)}")
        for name, value in values.items():
            raw = pack(value)
            kernarg[names[name][".offset"]:names[name][".offset"] + len(raw)] = raw
        self.launch_buffer(grid, block, bytes(kernarg), shared)


def pack(value):
    """Buffers become addresses, Python ints i32, floats f32; bytes and NumPy scalars stay as they are."""
    if isinstance(value, (Buffer, Memory)):
        return struct.pack("<Q", value.address)
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, bool):
        return struct.pack("<i", value)
    if isinstance(value, int):
        return struct.pack("<I", value & 0xFFFFFFFF)
    if isinstance(value, float):
        return struct.pack("<f", value)
    raise TypeError(type(value))
