"""An opened library: device, archive, operators by the names of their fields (`launch`, `query`, `explain`, `prefetch`), device memory."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar

import numpy as np

from . import _layout, arrays, native


_Self = TypeVar("_Self", bound="Core")


class Info(NamedTuple):
    """What a handle stands on (flydsl_aot_info)."""

    device: str
    device_library: str
    device_name: str
    arch: str
    target_id: str
    archive_path: str
    runtime_version: int
    compute_units: int
    kernel_count: int
    device_count: int


class Query(NamedTuple):
    """Answer of a query: `status` is 0 if the call would run, then `kernel` and `backend` name what runs and `workspace_bytes`
    says how much device memory it needs; else `reason` says why not (with status 0: that the kernel would be compiled)."""

    status: int
    name: str
    workspace_bytes: int
    kernel: str
    backend: str
    reason: str


class Candidate(NamedTuple):
    """One kernel that was considered, with the reason it was taken or refused."""

    taken: bool
    kernel: str
    backend: str
    reason: str
    fits: bool
    main: bool
    problem: str


class Core:
    """An opened library without its typed operators (handle.Handle has those too, and says what the arguments are)."""

    def __init__(self, device: Optional[str] = None, *, arch: Optional[str] = None, archive_path: Optional[str] = None,
                 device_library: Optional[str] = None, max_loaded_kernels: int = 0, jit: Optional[str] = None,
                 force_kernel: Optional[str] = None, backends: Optional[str] = None):
        kind = native.lookup(_layout.DEVICES, device or "default", "device")
        options, _kept = native.filled("open_options", {
            "device": kind, "device_library": device_library, "arch": arch, "archive_path": archive_path,
            "max_loaded_kernels": max_loaded_kernels, "jit": native.lookup(_layout.JIT, jit or "default", "jit"), "force_kernel": force_kernel, "backends": backends})
        pointer = ctypes.c_void_p()
        self.closed = True
        native.check(native.library().flydsl_aot_open(options, ctypes.byref(pointer)))
        self.pointer = pointer.value
        self.closed = False
        self.memories: "weakref.WeakSet[arrays.Memory]" = weakref.WeakSet()
        self._info = self._read_info()
        self.emulated = self._info.device == "emulator"
        self._finalizer = weakref.finalize(self, native.library().flydsl_aot_close, self.pointer)

    def close(self) -> None:
        """Waits for the device, unloads the kernels and frees the handle. Arrays made through it are gone with it."""
        if not self.closed:
            if self._info.device != "none":
                native.library().flydsl_aot_device_synchronize(self.pointer)
            for memory in list(self.memories):
                memory.free()
            self.closed = True
            self._finalizer()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_reason: Any) -> None:
        self.close()

    def _read_info(self) -> Info:
        info, _ = native.filled("info", {})
        native.check(native.library().flydsl_aot_get_info(self.pointer, info))
        values = native.read("info", ctypes.addressof(info))
        values["device"] = {number: name for name, number in _layout.DEVICES.items()}.get(values["device"], "unknown")
        return Info(**values)

    def info(self) -> Info:
        """Device, archive and architecture in use."""
        return self._info

    # Operators by the names of their fields: what the typed operators are made of, and what reaches a field they do not have.

    def query(self, operator: str, **fields: Any) -> Query:
        """Whether a call would run, with which kernel and how much workspace. Tensors may have pointer 0 (see `shape`). Nothing is
        raised for a call that is refused: `status` and `reason` say it."""
        return self.query_fields(operator, fields)

    def query_fields(self, operator: str, fields: Mapping[str, Any]) -> Query:
        """`query` with a mapping, for fields whose names have a dot ("mask.left")."""
        result, _ = native.filled("query_result", {})
        packed = native.parameters(operator, self._tensors(fields))
        status = native.function(f"{operator}_query")(self.pointer, packed, result)
        values = native.read("query_result", ctypes.addressof(result))
        reason = values["reason"] or (native.library().flydsl_aot_last_error().decode() if status else "")
        return Query(status, native.status_name(status), values["workspace_bytes"], values["kernel"], values["backend"], reason)

    def explain(self, operator: str, fields: Mapping[str, Any]) -> List[Candidate]:
        """Every kernel that was considered for a call, best first."""
        found: List[Candidate] = []

        def collect(values: Dict[str, Any]) -> None:
            found.append(Candidate(bool(values["taken"]), values["kernel"], values["backend"], values["reason"],
                                   bool(values["fits"]), bool(values["main"]), values["problem"]))

        packed = native.parameters(operator, self._tensors(fields))
        native.check(native.function(f"{operator}_explain")(self.pointer, packed, native.callback(collect), None))
        return found

    def prefetch(self, operator: str, fields: Mapping[str, Any]) -> None:
        """Loads the kernels of a call, so that the call itself can be captured into a graph."""
        packed = native.parameters(operator, self._tensors(fields))
        native.check(native.function(f"{operator}_prefetch")(self.pointer, packed))

    def launch(self, operator: str, fields: Mapping[str, Any], stream: int = 0,
               allocate: Optional[Callable[[int], Tuple[int, Any]]] = None) -> None:
        """The call itself, on `stream` (a hipStream_t as a number; 0: the null stream). Returns when it is queued. Where the operator
        needs a workspace and `fields` has none, `allocate(bytes)` makes one that is safe to let go of once the call is queued, and
        returns its address and owner; without `allocate` the binding makes one, and the call waits until it is done with it."""
        packed = native.parameters(operator, self._tensors(fields))
        owner = None
        if fields.get("workspace") is None and "workspace" in _layout.PARAMETERS[operator][1]:
            needed = self._workspace_bytes(operator, packed)
            if needed:
                address, owner = (allocate or self._own_workspace)(needed)
                native.set_workspace(operator, packed, address, needed)
        native.check(native.function(operator)(self.pointer, packed, stream))
        if isinstance(owner, arrays.Memory):
            self.synchronize()

    def _own_workspace(self, size: int) -> Tuple[int, Any]:
        memory = arrays.Memory(self, size)
        return memory.pointer, memory

    def _workspace_bytes(self, operator: str, packed: Any) -> int:
        result, _ = native.filled("query_result", {})
        if native.function(f"{operator}_query")(self.pointer, packed, result):
            return 0  # the call says why
        return native.workspace_bytes(result)

    def operands(self, **values: Any) -> Dict[str, Any]:
        """Each value as a DeviceArray, None as it is."""
        return {name: None if value is None else arrays.to_device(self, value) for name, value in values.items()}

    def _tensors(self, fields: Mapping[str, Any]) -> Dict[str, Any]:
        return {name: value.tensor if isinstance(value, arrays.DeviceArray) else value for name, value in fields.items()}

    # Device memory.

    def empty(self, sizes: Sequence[int], dtype: str) -> arrays.DeviceArray:
        """A dense array in device memory, contents undefined. dtype: "bf16", "fp16", "fp32", "e4m3", "e5m2", "e8m0", "e2m1x2",
        "int32", "int64", "bool"; sizes of e2m1x2 count fp4 values."""
        native.lookup(_layout.DTYPES, dtype, "dtype")
        return arrays.empty(self, tuple(sizes), dtype)

    def upload(self, array: Any, dtype: Optional[str] = None) -> arrays.DeviceArray:
        """A dense copy of a host array; with `dtype` converted to it, or taken as its bits if `array` holds unsigned integers of its
        size."""
        if dtype is not None:
            native.lookup(_layout.DTYPES, dtype, "dtype")
        return arrays.upload(self, array, dtype)

    def upload_to(self, pointer: int, host: np.ndarray) -> None:
        """Copies a dense host array to device memory; waits."""
        if host.nbytes:
            native.check(native.library().flydsl_aot_device_upload(self.pointer, pointer, host.ctypes.data, host.nbytes))

    def download(self, host: np.ndarray, pointer: int) -> None:
        """Fills a dense host array from device memory; waits."""
        if host.nbytes:
            native.check(native.library().flydsl_aot_device_download(self.pointer, host.ctypes.data, pointer, host.nbytes))

    def synchronize(self) -> None:
        """Waits for all work of the current device. Raises DeviceError if an earlier launch faulted."""
        native.check(native.library().flydsl_aot_device_synchronize(self.pointer))


def shape(sizes: Sequence[int], dtype: str, strides: Optional[Sequence[int]] = None) -> native.Tensor:
    """A tensor without memory, for queries: dense unless `strides` are given."""
    native.lookup(_layout.DTYPES, dtype, "dtype")
    if math.prod(sizes) < 0:
        raise ValueError(f"sizes are {tuple(sizes)}; none may be negative")
    return native.Tensor(0, dtype, tuple(sizes), tuple(strides) if strides is not None else arrays.dense_strides(sizes, dtype))
