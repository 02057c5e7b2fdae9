"""Small floating-point formats: exact decoding tables and rounding to nearest even, in NumPy."""
import numpy as np


def to_bf16(x):
    """float -> bf16 bits (uint16), nearest even; NaN stays NaN."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    out = ((bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(np.asarray(x, np.float32)), np.uint16(0x7FC0), out)


def from_bf16(bits):
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def _table(bits, exponent, bias, infinite, fnuz=False):
    """Values of all codes of a sign/exponent/mantissa format; `infinite`: the top exponent is inf and NaN."""
    mantissa = bits - 1 - exponent
    code = np.arange(1 << bits)
    e = code >> mantissa & ((1 << exponent) - 1)
    m = code & ((1 << mantissa) - 1)
    value = np.where(e == 0, m * 2.0 ** (1 - bias - mantissa), (1 + m * 2.0**-mantissa) * 2.0 ** (e.astype(float) - bias))
    value = np.where(code >> (bits - 1), -value, value)
    if fnuz:
        value[1 << (bits - 1)] = np.nan
    elif infinite:
        top = e == (1 << exponent) - 1
        value = np.where(top, np.where(m == 0, np.copysign(np.inf, value), np.nan), value)
    elif bits == 8:
        value[[0x7F, 0xFF]] = np.nan
    return value


TABLES = {
    "e4m3": _table(8, 4, 7, False), "e5m2": _table(8, 5, 15, True), "e4m3fnuz": _table(8, 4, 8, False, True),
    "e5m2fnuz": _table(8, 5, 16, False, True), "e2m1": _table(4, 2, 1, False),
}


def decode(codes, name):
    return TABLES[name][codes]


def encode(x, name):
    """Nearest even, saturating to the largest finite value; NaN to a NaN of the format (0 if it has none)."""
    table = TABLES[name]
    half = len(table) // 2
    finite = np.nonzero(np.isfinite(table[:half]))[0]
    values = table[finite]
    a = np.abs(np.asarray(x, np.float64))
    low = np.clip(np.searchsorted(values, a, side="right") - 1, 0, len(values) - 1)
    high = np.minimum(low + 1, len(values) - 1)
    down, up = a - values[low], values[high] - a
    pick = np.where((up < down) | ((up == down) & (low % 2 == 1)), high, low)
    code = finite[pick] + half * np.signbit(x)
    if name.endswith("fnuz"):
        code = np.where(finite[pick] == 0, 0, code)
    nan = np.nonzero(np.isnan(table))[0]
    return np.where(np.isnan(a), nan[0] if len(nan) else 0, code).astype(np.uint8)


def e8m0(codes):
    return 2.0 ** (np.asarray(codes).astype(np.float64) - 127)


def pack_fp4(codes):
    """(..., k) codes -> (..., k/2) bytes, the even k in the low nibble."""
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


def random_floats(rng, shape, kind, spread=1.0):
    """Random input of one format: (what goes to the device, the float64 it stands for)."""
    x = rng.standard_normal(shape) * spread
    if kind == "bf16":
        bits = to_bf16(x)
        return bits, from_bf16(bits).astype(np.float64)
    if kind in ("f16", "f32", "f64"):
        x = x.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind])
        return x, x.astype(np.float64)
    codes = encode(x, kind)
    return codes, decode(codes, kind)


def random_scaled(rng, rows, k, name):
    """Random MX input: (what goes to the device, the float64 it stands for, E8M0 scales of 32 values each)."""
    codes = rng.integers(0, 16, (rows, k)).astype(np.uint8) if name == "e2m1" else encode(rng.standard_normal((rows, k)), name)
    scales = rng.integers(122, 133, (rows, k // 32)).astype(np.uint8)
    return pack_fp4(codes) if name == "e2m1" else codes, decode(codes, name) * np.repeat(e8m0(scales), 32, 1), scales


def values(raw, kind):
    """What a device array of that format holds, as float64."""
    if kind == "bf16":
        return from_bf16(raw).astype(np.float64)
    if kind in TABLES:
        return decode(raw, kind)
    return raw.astype(np.float64)


STORAGE = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64,
           "e4m3": np.uint8, "e5m2": np.uint8}
