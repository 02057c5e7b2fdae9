"""32-, 64- and 16-bit integer instructions of the vector ALU."""

from machine import M32, M64, signed
from vector import valu

ALL, E64 = "e32 e64 dpp sdwa", ""


def integer(name, count, function, encodings=ALL, kind="u", **flags):
    """A function of raw source bits; the result is cut to its width."""
    bits = {"u": M32, "q": M64, "w": 0xFFFF}[kind]
    valu(name, kind, kind * count if isinstance(count, int) else count, lambda env, *x: function(*x) & bits, encodings,
         no_mods=True, **flags)


def s32(x):
    return signed(x, 32)


def s16(x):
    return signed(x, 16)


def s24(x):
    return signed(x, 24)


def popcount(x):
    return bin(x).count("1")


def first_high(x):
    return 32 - x.bit_length() if x else M32


def first_low(x):
    return (x & -x).bit_length() - 1 if x else M32


def first_high_signed(x):
    """Distance from the top to the first bit that differs from the sign; -1 when there is none."""
    y = (x ^ M32) if x >> 31 else x
    return 32 - y.bit_length() if y else M32


def reverse(x, bits=32):
    return int(format(x, f"0{bits}b")[::-1], 2)


def bfe_signed(a, b, c):
    width = c & 31
    return signed(s32(a) >> (b & 31), width) if width else 0


def saturate_unsigned(x, bits):
    return max(0, min(x, (1 << bits) - 1))


def saturate_signed(x, bits):
    return max(-(1 << bits - 1), min(x, (1 << bits - 1) - 1))


# Moves and logic
integer("v_mov_b32", 1, lambda a: a)
integer("v_not_b32", 1, lambda a: ~a)
integer("v_bfrev_b32", 1, reverse)
integer("v_ffbh_u32", 1, first_high)
integer("v_ffbl_b32", 1, first_low)
integer("v_ffbh_i32", 1, first_high_signed)
integer("v_and_b32", 2, lambda a, b: a & b)
integer("v_or_b32", 2, lambda a, b: a | b)
integer("v_xor_b32", 2, lambda a, b: a ^ b)
integer("v_xnor_b32", 2, lambda a, b: ~(a ^ b))
integer("v_lshlrev_b32", 2, lambda a, b: b << (a & 31))
integer("v_lshrrev_b32", 2, lambda a, b: b >> (a & 31))
integer("v_ashrrev_i32", 2, lambda a, b: s32(b) >> (a & 31))
integer("v_bfm_b32", 2, lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), E64)
integer("v_bcnt_u32_b32", 2, lambda a, b: b + popcount(a), E64)
integer("v_bfe_u32", 3, lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1), E64)
integer("v_bfe_i32", 3, bfe_signed, E64)
integer("v_bfi_b32", 3, lambda a, b, c: a & b | ~a & c, E64)
integer("v_alignbit_b32", 3, lambda a, b, c: (a << 32 | b) >> (c & 31), E64)
integer("v_alignbyte_b32", 3, lambda a, b, c: (a << 32 | b) >> 8 * (c & 3), E64)
integer("v_and_or_b32", 3, lambda a, b, c: a & b | c, E64)
integer("v_or3_b32", 3, lambda a, b, c: a | b | c, E64)
integer("v_xad_u32", 3, lambda a, b, c: (a ^ b) + c, E64)
integer("v_lshl_add_u32", 3, lambda a, b, c: (a << (b & 31)) + c, E64)
integer("v_add_lshl_u32", 3, lambda a, b, c: (a + b) << (c & 31), E64)
integer("v_lshl_or_b32", 3, lambda a, b, c: a << (b & 31) | c, E64)
integer("v_add3_u32", 3, lambda a, b, c: a + b + c, E64)


def perm_byte(data, select):
    """One byte of V_PERM_B32; data is {S0, S1}."""
    if select >= 13:
        return 0xFF
    if select == 12:
        return 0
    if select >= 8:  # sign of bytes 1, 3, 5, 7
        return 0xFF if data >> (16 * (select - 8) + 15) & 1 else 0
    return data >> 8 * select & 0xFF


def perm(a, b, c):
    return sum(perm_byte(a << 32 | b, c >> 8 * i & 0xFF) << 8 * i for i in range(4))


integer("v_perm_b32", 3, perm, E64)


def bitop3(env, a, b, c):
    table, bits = env.inst.m["bitop3"], 32 if env.inst.name.endswith("b32") else 16
    return sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(bits))


valu("v_bitop3_b32", "u", "uuu", bitop3, E64, no_mods=True, bitop=True, since="gfx950")
valu("v_bitop3_b16", "w", "www", bitop3, E64, no_mods=True, bitop=True, since="gfx950", keep_half=True)


# Arithmetic with optional clamp
def clampable(name, function, bits, signed_result, encodings, count=2, **flags):
    kind = "u" if bits == 32 else "w"

    def lane(env, *sources):
        exact = function(*[signed(x, bits) for x in sources] if signed_result else sources)
        if env.clamp:
            exact = (saturate_signed if signed_result else saturate_unsigned)(exact, bits)
        return exact & ((1 << bits) - 1)

    valu(name, kind, kind * count, lane, encodings, no_mods=True, int_clamp=True, **flags)


clampable("v_add_u32", lambda a, b: a + b, 32, False, ALL)
clampable("v_sub_u32", lambda a, b: a - b, 32, False, ALL)
clampable("v_subrev_u32", lambda a, b: b - a, 32, False, ALL)
clampable("v_add_u16", lambda a, b: a + b, 16, False, ALL)
clampable("v_sub_u16", lambda a, b: a - b, 16, False, ALL)
clampable("v_subrev_u16", lambda a, b: b - a, 16, False, ALL)
clampable("v_add_i32", lambda a, b: a + b, 32, True, E64)
clampable("v_sub_i32", lambda a, b: a - b, 32, True, E64)
clampable("v_add_i16", lambda a, b: a + b, 16, True, E64, keep_half=True)
clampable("v_sub_i16", lambda a, b: a - b, 16, True, E64, keep_half=True)
clampable("v_mad_u16", lambda a, b, c: a * b + c, 16, False, E64, 3, keep_half=True)
clampable("v_mad_i16", lambda a, b, c: a * b + c, 16, True, E64, 3, keep_half=True)


def carrying(name, function, carry_in):
    def lane(env, a, b):
        exact = function(a, b, env.carry_in)
        env.carry_out = 1 if exact < 0 or exact > M32 else 0
        if env.clamp:
            exact = saturate_unsigned(exact, 32)
        return exact & M32

    valu(name, "u", "uu", lane, ALL, no_mods=True, int_clamp=True, carry_out=True, carry_in=carry_in)


carrying("v_add_co_u32", lambda a, b, c: a + b, False)
carrying("v_sub_co_u32", lambda a, b, c: a - b, False)
carrying("v_subrev_co_u32", lambda a, b, c: b - a, False)
carrying("v_addc_co_u32", lambda a, b, c: a + b + c, True)
carrying("v_subb_co_u32", lambda a, b, c: a - b - c, True)
carrying("v_subbrev_co_u32", lambda a, b, c: b - a - c, True)

valu("v_cndmask_b32", "u", "uu", lambda env, a, b: b if env.carry_in else a, ALL, carry_in=True,
     sign_mods=True)

integer("v_min_i32", 2, lambda a, b: min(s32(a), s32(b)))
integer("v_max_i32", 2, lambda a, b: max(s32(a), s32(b)))
integer("v_min_u32", 2, min)
integer("v_max_u32", 2, max)
integer("v_min3_i32", 3, lambda *x: min(map(s32, x)), E64)
integer("v_max3_i32", 3, lambda *x: max(map(s32, x)), E64)
integer("v_med3_i32", 3, lambda *x: sorted(map(s32, x))[1], E64)
integer("v_min3_u32", 3, min, E64)
integer("v_max3_u32", 3, max, E64)
integer("v_med3_u32", 3, lambda *x: sorted(x)[1], E64)
integer("v_mul_lo_u32", 2, lambda a, b: a * b, E64)
integer("v_mul_hi_u32", 2, lambda a, b: a * b >> 32, E64)
integer("v_mul_hi_i32", 2, lambda a, b: s32(a) * s32(b) >> 32, E64)
integer("v_mul_i32_i24", 2, lambda a, b: s24(a) * s24(b))
integer("v_mul_hi_i32_i24", 2, lambda a, b: s24(a) * s24(b) >> 32)
integer("v_mul_u32_u24", 2, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF))
integer("v_mul_hi_u32_u24", 2, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32)
integer("v_mad_i32_i24", 3, lambda a, b, c: s24(a) * s24(b) + c, E64)
integer("v_mad_u32_u24", 3, lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c, E64)
integer("v_sad_u8", 3, lambda a, b, c: c + sum(abs((a >> s & 255) - (b >> s & 255)) for s in (0, 8, 16, 24)), E64)
integer("v_sad_hi_u8", 3,
        lambda a, b, c: c + (sum(abs((a >> s & 255) - (b >> s & 255)) for s in (0, 8, 16, 24)) << 16), E64)
integer("v_sad_u16", 3, lambda a, b, c: c + sum(abs((a >> s & 65535) - (b >> s & 65535)) for s in (0, 16)), E64)
integer("v_sad_u32", 3, lambda a, b, c: c + abs(a - b), E64)
integer("v_msad_u8", 3, lambda a, b, c: c + sum(
    abs((a >> s & 255) - (b >> s & 255)) if b >> s & 255 else 0 for s in (0, 8, 16, 24)), E64)
integer("v_lerp_u8", 3, lambda a, b, c: sum(
    ((a >> s & 255) + (b >> s & 255) + (c >> s & 1) >> 1) << s for s in (0, 8, 16, 24)), E64)


# 16 bits
for _name, _fn in (
    ("v_mul_lo_u16", lambda a, b: a * b), ("v_lshlrev_b16", lambda a, b: b << (a & 15)),
    ("v_lshrrev_b16", lambda a, b: b >> (a & 15)), ("v_ashrrev_i16", lambda a, b: s16(b) >> (a & 15)),
    ("v_max_u16", max), ("v_min_u16", min), ("v_max_i16", lambda a, b: max(s16(a), s16(b))),
    ("v_min_i16", lambda a, b: min(s16(a), s16(b)))):
    integer(_name, 2, _fn, kind="w")
for _name, _fn in (
    ("v_min3_i16", lambda *x: min(map(s16, x))), ("v_max3_i16", lambda *x: max(map(s16, x))),
    ("v_med3_i16", lambda *x: sorted(map(s16, x))[1]), ("v_min3_u16", min), ("v_max3_u16", max),
    ("v_med3_u16", lambda *x: sorted(x)[1])):
    integer(_name, 3, _fn, E64, kind="w", keep_half=True)
clampable("v_mad_legacy_u16", lambda a, b, c: a * b + c, 16, False, E64, 3)
clampable("v_mad_legacy_i16", lambda a, b, c: a * b + c, 16, True, E64, 3)
valu("v_mad_u32_u16", "u", "wwu", lambda env, a, b, c: a * b + c & M32, E64, no_mods=True)
valu("v_mad_i32_i16", "u", "wwu", lambda env, a, b, c: s16(a) * s16(b) + c & M32, E64, no_mods=True)
valu("v_pack_b32_f16", "u", "hh", lambda env, a, b: a | b << 16, E64, no_finish=True, no_clamp=True)


# 64 bits
def mad64(name, widen):
    def lane(env, a, b, c):
        exact = widen(a) * widen(b) + (signed(c, 64) if widen is s32 else c)
        env.carry_out = exact >> 64 & 1
        return exact & M64

    valu(name, "q", "uuq", lane, E64, no_mods=True, carry_out=True)


mad64("v_mad_u64_u32", lambda x: x)
mad64("v_mad_i64_i32", s32)
integer("v_lshlrev_b64", "uq", lambda a, b: b << (a & 63), E64, kind="q")
integer("v_lshrrev_b64", "uq", lambda a, b: b >> (a & 63), E64, kind="q")
integer("v_ashrrev_i64", "uq", lambda a, b: signed(b, 64) >> (a & 63), E64, kind="q")
integer("v_lshl_add_u64", "quq", lambda a, b, c: (a << (b & 7)) + c, E64, kind="q", since="gfx942")
integer("v_mov_b64", "q", lambda a: a, "e32 dpp", kind="q", since="gfx942")
integer("v_accvgpr_read_b32", 1, lambda a: a, E64, accumulation="source")
integer("v_accvgpr_write_b32", 1, lambda a: a, E64, accumulation="result")
integer("v_accvgpr_mov_b32", 1, lambda a: a, E64, accumulation="both")

valu("v_mbcnt_lo_u32_b32", "u", "uu",
     lambda env, a, b: b + popcount(a & (1 << env.lane) - 1 & M32) & M32, E64, no_mods=True)
valu("v_mbcnt_hi_u32_b32", "u", "uu",
     lambda env, a, b: b + popcount(a & ((1 << env.lane) - 1) >> 32) & M32, E64, no_mods=True)


# Saturating packs of integers
integer("v_cvt_pk_u16_u32", 2, lambda a, b: min(a, 65535) | min(b, 65535) << 16, E64)
integer("v_cvt_pk_i16_i32", 2, lambda a, b: (saturate_signed(s32(a), 16) & 65535)
        | (saturate_signed(s32(b), 16) & 65535) << 16, E64)
integer("v_sat_pk_u8_i16", 1, lambda a: saturate_unsigned(s16(a), 8) | saturate_unsigned(s16(a >> 16), 8) << 8)
valu("v_ashr_pk_i8_i32", "w", "uuu", lambda env, a, b, c: (saturate_signed(s32(a) >> (c & 31), 8) & 255)
     | (saturate_signed(s32(b) >> (c & 31), 8) & 255) << 8, E64, no_mods=True, since="gfx950", keep_half=True)
valu("v_ashr_pk_u8_i32", "w", "uuu", lambda env, a, b, c: saturate_unsigned(s32(a) >> (c & 31), 8)
     | saturate_unsigned(s32(b) >> (c & 31), 8) << 8, E64, no_mods=True, since="gfx950", keep_half=True)
