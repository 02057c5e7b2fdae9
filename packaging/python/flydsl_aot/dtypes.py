"""Element types that NumPy lacks, to and from float32: bf16, OCP fp8 (e4m3, e5m2), OCP MX scales (e8m0) and pairs of fp4 (e2m1x2).

Conversion rounds to nearest even and saturates to the largest finite number; infinities saturate too, except in bf16 and e5m2,
which have them (OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats 1.0)."""

from __future__ import annotations

import functools

import numpy as np

NATIVE = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "int32": np.int32, "int64": np.int64, "bool": np.bool_}
_SMALL = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m1x2": (2, 1, 1)}  # exponent and mantissa bits, bias
# Names that packages for small types (ml_dtypes) give to theirs.
_FOREIGN = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e4m3fnuz": "e4m3_fnuz",
            "float8_e5m2fnuz": "e5m2_fnuz", "float8_e8m0fnu": "e8m0"}


def storage(dtype: str) -> np.dtype:
    """The NumPy type that holds one stored element: the type itself, or unsigned integers of its size."""
    return np.dtype(NATIVE.get(dtype, np.uint16 if dtype == "bf16" else np.uint8))


def name_of(dtype: np.dtype) -> str:
    """The library's name of a NumPy type, ml_dtypes' among them. TypeError where it has none."""
    for name, native in NATIVE.items():
        if dtype == native:
            return name
    if dtype.name in _FOREIGN:
        return _FOREIGN[dtype.name]
    raise TypeError(f"arrays of {dtype} have no element type of the library; give `dtype` (bf16 and 8-bit types are made from float32)")


@functools.lru_cache(maxsize=None)
def _values(dtype: str) -> np.ndarray:
    """Values of all codes of a type of at most 8 bits, in the order of the codes."""
    if dtype == "e8m0":
        codes = np.arange(256)
        return np.where(codes == 255, np.nan, np.exp2(codes - 127.0)).astype(np.float32)
    exponent_bits, mantissa_bits, bias = _SMALL[dtype]
    codes = np.arange(1 << (1 + exponent_bits + mantissa_bits))
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    value = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * np.exp2(exponent - float(bias)))
    magnitude = codes & (len(codes) // 2 - 1)
    if dtype == "e4m3":
        value[magnitude == 0x7F] = np.nan
    if dtype == "e5m2":
        value[magnitude == 0x7C] = np.inf
        value[magnitude > 0x7C] = np.nan
    return np.where(codes >= len(codes) // 2, -value, value).astype(np.float32)


def _nearest(x: np.ndarray, dtype: str) -> np.ndarray:
    """Codes of the nearest numbers, of two equally near ones the one with the even code."""
    values = _values(dtype)
    half = values[: 256 if dtype == "e8m0" else len(values) // 2]
    finite = half[np.isfinite(half)].astype(np.float64)
    magnitude = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(finite, magnitude), 1, len(finite) - 1)
    distance = (magnitude - finite[above - 1]) - (finite[above] - magnitude)
    code = np.where((distance > 0) | ((distance == 0) & (above % 2 == 0)), above, above - 1)
    sign = np.where(np.signbit(x) & (dtype != "e8m0"), len(values) // 2, 0)
    if dtype == "e5m2":
        code = np.where(np.isinf(x), 0x7C, code)
    if dtype != "e2m1x2":
        code = np.where(np.isnan(x), {"e4m3": 0x7F, "e5m2": 0x7E, "e8m0": 0xFF}[dtype], code)
    return (code + sign).astype(np.uint8)


def encode(x: np.ndarray, dtype: str) -> np.ndarray:
    """Stored elements of `dtype`, dense: of e2m1x2 half as many along the last axis, low nibble first."""
    if dtype in NATIVE:
        return np.ascontiguousarray(x, NATIVE[dtype])
    x = np.ascontiguousarray(x, np.float32)
    if dtype == "bf16":
        bits = x.view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(x), (bits >> 16) | 0x40, rounded).astype(np.uint16)
    if dtype not in ("e4m3", "e5m2", "e8m0", "e2m1x2"):
        raise TypeError(f"there is no conversion of numbers to {dtype}; give its bits")
    codes = _nearest(x, dtype)
    if dtype != "e2m1x2":
        return codes
    if codes.ndim == 0 or codes.shape[-1] % 2:
        raise ValueError(f"shape {codes.shape}: the last axis of e2m1x2 holds pairs, its size has to be even")
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


def decode(stored: np.ndarray, dtype: str) -> np.ndarray:
    """Stored elements as numbers: of a NumPy type as they are, others as float32, which holds them exactly."""
    if dtype in NATIVE:
        return stored
    if dtype == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    if dtype == "e2m1x2":
        values = _values(dtype)
        pairs = np.stack([values[stored & 15], values[stored >> 4]], -1)
        return pairs.reshape(*stored.shape[:-1], 2 * stored.shape[-1])
    if dtype not in ("e4m3", "e5m2", "e8m0"):
        raise TypeError(f"there is no conversion of {dtype} to numbers; take its bits")
    return _values(dtype)[stored]
