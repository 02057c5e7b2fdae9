"""V_CMP_* and V_CMPX_*, V_CMP_CLASS_*."""

import fp
from fp import F16, F32, F64
from machine import signed
from vector import valu

FLOAT_RELATION = {  # what each name accepts: less, equal, greater, unordered
    "f": "", "lt": "l", "eq": "e", "le": "le", "gt": "g", "lg": "lg", "ge": "ge", "o": "leg", "u": "u", "nge": "lu",
    "nlg": "eu", "ngt": "leu", "nle": "gu", "neq": "lgu", "nlt": "egu", "tru": "legu"}
INTEGER_RELATION = {"f": "", "lt": "l", "eq": "e", "le": "le", "gt": "g", "ne": "lg", "ge": "ge", "t": "leg"}


def relation(fmt, a, b):
    if fmt.is_nan(a) or fmt.is_nan(b):
        return "u"
    x, y = fp.order_key(fmt, a), fp.order_key(fmt, b)
    return "l" if x < y else "e" if x == y else "g"


def float_compare(fmt, accepted):
    return lambda env, a, b: relation(fmt, *fp.inputs(env.rules(fmt), a, b)) in accepted if accepted else 0


def integer_compare(bits, is_signed, accepted):
    def lane(env, a, b):
        if is_signed:
            a, b = signed(a, bits), signed(b, bits)
        return ("l" if a < b else "e" if a == b else "g") in accepted

    return lane


def class_of(fmt, x):
    """Bit number in the mask of V_CMP_CLASS."""
    negative = bool(x & fmt.sign)
    if fmt.is_nan(x):
        return 0 if fmt.is_snan(x) else 1
    if fmt.is_inf(x):
        return 2 if negative else 9
    if fmt.is_zero(x):
        return 5 if negative else 6
    if fmt.is_denormal(x):
        return 4 if negative else 7
    return 3 if negative else 8


def as_mask(function):
    return lambda env, *x: int(bool(function(env, *x)))


for prefix in ("v_cmp", "v_cmpx"):
    for size, letter, fmt in (("f32", "f", F32), ("f64", "d", F64), ("f16", "h", F16)):
        sdwa = "" if letter == "d" else " sdwa"
        for name, accepted in FLOAT_RELATION.items():
            valu(f"{prefix}_{name}_{size}", "m", letter * 2, as_mask(float_compare(fmt, accepted)), "e32 e64" + sdwa,
                 compare=True, no_clamp=True)
        valu(f"{prefix}_class_{size}", "m", letter + "u",
             as_mask(lambda env, x, mask, fmt=fmt: mask >> class_of(fmt, x) & 1), "e32 e64" + sdwa, compare=True,
             no_clamp=True, integer_source=1)
    for bits, kind in ((32, "u"), (64, "q"), (16, "w")):
        for sign in "iu":
            for name, accepted in INTEGER_RELATION.items():
                valu(f"{prefix}_{name}_{sign}{bits}", "m", kind * 2,
                     as_mask(integer_compare(bits, sign == "i", accepted)), "e32 e64" + ("" if bits == 64 else " sdwa"),
                     compare=True, no_mods=True)
