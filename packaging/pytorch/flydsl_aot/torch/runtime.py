"""The library on PyTorch's tensors: which devices can be used, launches on the current stream, and why a call falls back.

On a ROCm device the library finds the HIP runtime that PyTorch has loaded. CPU tensors run on the emulator, after `emulate()` only:
operands are copied to its memory and results back."""

from __future__ import annotations

import functools
import logging
import math
import os
import sys
from typing import Any, Dict, Mapping, Optional, Sequence, Set, Tuple

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .. import _layout, arrays, native
from ..errors import Error
from ..handle import Handle

log = logging.getLogger("flydsl_aot.torch")

DTYPES = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.int32: "int32",
          torch.int64: "int64", torch.bool: "bool", torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2",
          torch.float8_e4m3fnuz: "e4m3_fnuz", torch.float8_e5m2fnuz: "e5m2_fnuz"}
for _name, _dtype in (("float8_e8m0fnu", "e8m0"), ("float4_e2m1fn_x2", "e2m1x2")):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = _dtype

_emulating = os.environ.get("FLYDSL_AOT_TORCH_EMULATE") == "1"
_told: Set[str] = set()


def emulate(on: bool = True) -> None:
    """Lets operators on CPU tensors run on the emulator instead of falling back: for tests and teaching, it is slow. The
    environment's FLYDSL_AOT_TORCH_EMULATE=1 does the same at import."""
    global _emulating
    if on != _emulating:
        forget_graphs()
    _emulating = on


def forget_graphs() -> None:
    """Of torch.compile: those compiled before took another way."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


def note_fallback(operator: str, reason: str) -> None:
    """Logs why a call falls back to ATen: at INFO the first time, then at DEBUG."""
    text = f"{operator} falls back to ATen: {reason}"
    log.log(logging.DEBUG if text in _told else logging.INFO, "%s", text)
    _told.add(text)


@functools.lru_cache(maxsize=None)
def _open(kind: str, index: int) -> Any:
    """A handle, or the reason there is none."""
    try:
        if kind == "cpu":
            return Handle(device="emulator")
        with torch.cuda.device(index):
            return Handle(device="hip")
    except (Error, OSError) as reason:
        return str(reason)


@torch.compiler.assume_constant_result
def device_refusal(kind: str, index: int) -> str:
    """Why a device cannot be used; empty if it can. torch.compile takes the answer as a constant."""
    if kind == "cpu":
        if not _emulating:
            return "CPU tensors run on the emulator only after flydsl_aot.torch.emulate()"
    elif kind != "cuda" or torch.version.hip is None:
        return f"{kind} tensors; ROCm devices are supported"
    handle = _open(kind, index)
    return handle if isinstance(handle, str) else ""


def tensor_refusal(x: torch.Tensor) -> str:
    """Why a tensor's device cannot be used, or why PyTorch sees more in the tensor than its data; empty if neither."""
    if not torch.compiler.is_compiling():
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return "inside a transform of torch.func"
        if forward_ad._current_level >= 0:
            return "inside forward-mode differentiation"
        if type(x) is not torch.Tensor and is_traceable_wrapper_subclass(x):
            return f"tensors of type {type(x).__name__}"
    return device_refusal(x.device.type, x.device.index or 0)


def handle_for(device: torch.device) -> Handle:
    """The device's handle. RuntimeError says why there is none."""
    index = device.index if device.index is not None else torch.cuda.current_device() if device.type == "cuda" else 0
    reason = device_refusal(device.type, index)
    if reason:
        raise RuntimeError(f"flydsl_aot cannot run here: {reason}")
    return _open(device.type, index)


def dtype_name(dtype: torch.dtype) -> str:
    """The library's name of a type; TypeError where it has none."""
    if dtype not in DTYPES:
        raise TypeError(f"{dtype} is no element type of flydsl_aot")
    return DTYPES[dtype]


def view(tensor: torch.Tensor, pointer: Optional[int] = None) -> native.Tensor:
    """A tensor as the library takes it. PyTorch counts pairs of fp4 values, the library values: on the packed axis, that of stride 1."""
    name = dtype_name(tensor.dtype)
    sizes, strides = tuple(tensor.shape), tensor.stride()
    if name == "e2m1x2":
        axes = [axis for axis, stride in enumerate(strides) if stride == 1]
        if not axes:
            raise ValueError(f"strides are {strides}; one axis of packed fp4 has to be contiguous")
        sizes = tuple(2 * size if axis == axes[-1] else size for axis, size in enumerate(sizes))
    return native.Tensor(tensor.data_ptr() if pointer is None else pointer, name, sizes, strides)


def would_run(operator: str, fields: Mapping[str, Any], device: torch.device) -> bool:
    """Whether the library has a kernel for these tensors as they lie in memory."""
    packed = {name: view(value) if isinstance(value, torch.Tensor) else value for name, value in fields.items()}
    return handle_for(device).query_fields(operator, packed).status == 0


def launch(operator: str, fields: Mapping[str, Any], outputs: Sequence[str], device: torch.device) -> None:
    """Calls an operator with tensors among its fields, on the device's current stream. `outputs` names those that are written. A tensor in
    the place of a number in device memory is that number's."""
    handle = handle_for(device)
    if handle.emulated:
        _launch_emulated(handle, operator, fields, outputs)
        return
    kinds = _layout.PARAMETERS[operator][1]
    packed = {name: value if not isinstance(value, torch.Tensor) else view(value) if kinds[name][0] == "tensor" else value.data_ptr()
              for name, value in fields.items()}

    def allocate(size: int) -> Tuple[int, torch.Tensor]:
        # Of PyTorch's allocator, which gives the memory to later work of the same stream only.
        workspace = torch.empty(size, dtype=torch.uint8, device=device)
        return workspace.data_ptr(), workspace

    with torch.cuda.device(device):
        handle.launch(operator, packed, torch.cuda.current_stream(device).cuda_stream, allocate)


def _span_bytes(tensor: torch.Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    return (1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))) * tensor.element_size()


def _launch_emulated(handle: Handle, operator: str, fields: Mapping[str, Any], outputs: Sequence[str]) -> None:
    packed: Dict[str, Any] = {}
    blocks = {}
    for name, value in fields.items():
        if not isinstance(value, torch.Tensor):
            packed[name] = value
            continue
        size = _span_bytes(value)
        blocks[name] = block = arrays.Memory(handle, size)
        if size:
            native.check(native.library().flydsl_aot_device_upload(handle.pointer, block.pointer, value.data_ptr(), size))
        is_number = _layout.PARAMETERS[operator][1][name][0] in ("in64", "out64")
        packed[name] = block.pointer if is_number else view(value, block.pointer)
    handle.launch(operator, packed)
    handle.synchronize()
    for name in outputs:
        if fields.get(name) is not None and blocks[name].bytes:
            native.check(native.library().flydsl_aot_device_download(handle.pointer, fields[name].data_ptr(), blocks[name].pointer,
                                                                     blocks[name].bytes))


def autocast(tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """The tensors as autocast would hand them to an operator on its list of 16-bit ones."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return [t.to(dtype) if t.is_floating_point() and t.dtype != torch.float64 else t for t in tensors]


def too_large(*sizes: int) -> bool:
    """Beyond the sizes that every operator takes."""
    return any(size > 1 << 30 for size in sizes) or math.prod(sizes) >= 1 << 62
