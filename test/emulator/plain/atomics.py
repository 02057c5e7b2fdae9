"""Floating-point atomics: new value from (state, old value, data, second data). CDNA4 ISA, "Float Memory Atomics": always round
to nearest even; LDS follows MODE for denormals (adds: sources and result; compares: sources), except fp64 adds, which keep
them; memory keeps them, but fp32 adds of gfx90a, which flush."""

import fp
from fp import F32


def rules_of_mode(fmt, state):
    return fp.Rules(fmt, state.mode & 0xF0)


def lds_add(fmt):
    return lambda state, old, x, _: fp.add(rules_of_mode(fmt, state), old, x)


def add_keeping_denormals(fmt):
    return lambda state, old, x, _: fp.add(fp.exact_rules(fmt), old, x)


def memory_add_f32(state, old, x, _):
    rules = fp.Rules(F32, 0x00 if state.processor == "gfx90a" else 0xF0)
    return fp.add(rules, old, x)


def packed(function):
    """Both halves of a dword."""
    return lambda state, old, x, _: sum(function(state, old >> s & 0xFFFF, x >> s & 0xFFFF, 0) << s for s in (0, 16))


def pick(fmt, flush, old, x, want_less):
    """The smaller or larger, as it was before flushing; a signalling NaN wins, a quiet one loses; -0 is below +0."""
    for value in (old, x):
        if fmt.is_snan(value):
            return value | fmt.quiet
    if fmt.is_nan(x) or fmt.is_nan(old):
        return old if fmt.is_nan(x) else x
    a, b = ordered(fmt, fp.flush(fmt, x, flush)), ordered(fmt, fp.flush(fmt, old, flush))
    return x if (a < b if want_less else a > b) else old


def ordered(fmt, x):
    """An integer that orders finite numbers, infinities and the two zeros."""
    return -1 - (x & ~fmt.sign) if x & fmt.sign else x


def lds_pick(fmt, want_less):
    return lambda state, old, x, _: pick(fmt, rules_of_mode(fmt, state).flush_in, old, x, want_less)


def memory_pick(fmt, want_less):
    return lambda state, old, x, _: pick(fmt, False, old, x, want_less)


def lds_compare_store(fmt):
    """data is compared, the second data is stored; what is stored is flushed as the sources are."""

    def function(state, old, compared, new):
        flush = rules_of_mode(fmt, state).flush_in
        a, b = fp.flush(fmt, old, flush), fp.flush(fmt, compared, flush)
        equal = not fmt.is_nan(a) and not fmt.is_nan(b) and (a == b or fmt.is_zero(a) and fmt.is_zero(b))
        return fp.flush(fmt, new, flush) if equal else old

    return function
