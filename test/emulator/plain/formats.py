"""Formats of typed buffer accesses: bits of memory to and from the components of registers. CDNA4 ISA, "Data Formats": the
data format gives the widths of the components from the lowest bit up, the number format their meaning."""

import fp
from fp import F16, F32
from machine import signed

UNORM, SNORM, USCALED, SSCALED, UINT, SINT, FLOAT = 0, 1, 2, 3, 4, 5, 7
LAYOUT = {1: (8,), 2: (16,), 3: (8, 8), 4: (32,), 5: (16, 16), 6: (11, 11, 10), 7: (10, 11, 11), 8: (2, 10, 10, 10),
          9: (10, 10, 10, 2), 10: (8, 8, 8, 8), 11: (32, 32), 12: (16, 16, 16, 16), 13: (32, 32, 32), 14: (32, 32, 32, 32)}
DATA_NAMES = {i: "BUF_DATA_FORMAT_" + n for i, n in enumerate(
    ["INVALID", "8", "16", "8_8", "32", "16_16", "10_11_11", "11_11_10", "10_10_10_2", "2_10_10_10", "8_8_8_8", "32_32",
     "16_16_16_16", "32_32_32", "32_32_32_32"])}
NUMBER_NAMES = {UNORM: "BUF_NUM_FORMAT_UNORM", SNORM: "BUF_NUM_FORMAT_SNORM", USCALED: "BUF_NUM_FORMAT_USCALED",
                SSCALED: "BUF_NUM_FORMAT_SSCALED", UINT: "BUF_NUM_FORMAT_UINT", SINT: "BUF_NUM_FORMAT_SINT",
                FLOAT: "BUF_NUM_FORMAT_FLOAT"}
SMALL = {11: fp.Format("float11", 5, 6), 10: fp.Format("float10", 5, 5)}  # without a sign


def exists(data, number):
    widths = LAYOUT[data]
    if number == FLOAT:
        return all(w in (16, 32) for w in widths) or data in (6, 7)
    return max(widths) < 32 and data not in (6, 7) or max(widths) == 32 and number in (UINT, SINT)


def choices(halves, store):
    """(data format, number format) to try: 16-bit values with components of at most 16 bits; rounding to the small floats is
    not defined."""
    return [(d, n) for d in LAYOUT for n in NUMBER_NAMES if exists(d, n) and not (halves and max(LAYOUT[d]) == 32)
            and not (store and n == FLOAT and d in (6, 7))]


def size(data):
    return sum(LAYOUT[data]) // 8


def is_integer(number):
    return number in (UINT, SINT)


def one(number, half):
    return 1 if is_integer(number) else 0x3F800000 if half is None else 0x3C00


def quotient(fmt, n, d):
    """n / d, rounded once to the nearest."""
    if n == 0:
        return 0
    scaled, rest = divmod(abs(n) << 80, d)
    return fp.encode(fmt, scaled if n > 0 else -scaled, -80, sticky=rest)


def unpack(data, number, raw, half):
    """Components of memory as register values, 32 or 16 bits each."""
    target, found = F32 if half is None else F16, []
    for width in LAYOUT[data]:
        field, raw = raw & (1 << width) - 1, raw >> width
        found.append(component(target, width, number, field))
    return found


def component(target, width, number, field):
    value = signed(field, width) if number in (SNORM, SSCALED, SINT) else field
    if is_integer(number):
        return value & target.mask
    if number == UNORM:
        return quotient(target, value, (1 << width) - 1)
    if number == SNORM:
        limit = (1 << width - 1) - 1
        return quotient(target, max(value, -limit), limit)
    if number in (USCALED, SSCALED):
        return fp.encode(target, value, 0)
    source = {32: F32, 16: F16}.get(width) or SMALL[width]
    if source is target:
        return field
    if source.is_nan(field) and target is F32:  # not quieted
        sign = target.sign if width == 16 and field & source.sign else 0
        return sign | target.inf | (field & (1 << source.mbits) - 1) << target.mbits - source.mbits
    return fp.convert(source, target, field, fp.exact_rules(source), fp.exact_rules(target), fp.NEAREST)


def pack(data, number, values, half):
    source, raw, at = F32 if half is None else F16, 0, 0
    for width, value in zip(LAYOUT[data], values):
        raw |= (field_of(source, width, number, value) & (1 << width) - 1) << at
        at += width
    return raw


def field_of(source, width, number, x):
    limit = (1 << width - 1) - 1
    if number == UINT:
        return min(x, (1 << width) - 1)
    if number == SINT:
        return max(min(signed(x, source.bits), limit), -limit - 1)
    if number == FLOAT:
        target = {32: F32, 16: F16}.get(width) or SMALL[width]
        if target is source:
            return x
        return fp.convert(source, target, x, fp.exact_rules(source), fp.exact_rules(target), fp.NEAREST)
    low, high, scale = {UNORM: (0, (1 << width) - 1, (1 << width) - 1), SNORM: (-limit, limit, limit),
                        USCALED: (0, (1 << width) - 1, 1), SSCALED: (-limit - 1, limit, 1)}[number]
    if source.is_nan(x):
        return 0
    if source.is_inf(x):
        return low if x & source.sign else high
    n, e = source.number(x)
    rounded = fp.round_number(n * scale, e, fp.NEAREST if number in (UNORM, SNORM) else fp.ZERO)
    return max(low, min(high, rounded))

