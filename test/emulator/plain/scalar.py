"""The scalar ALU: SOP1, SOP2, SOPK, SOPC on SGPRs, SCC and EXEC."""

from machine import EXEC, M32, M64, raw, signed
from vector_integer import first_high, first_high_signed, first_low, popcount, reverse

TABLE = {}
UNSET = object()  # SCC stays


class Row:
    """kinds: destination and sources, u 32 or q 64 bits; k: simm16.  function(state, sources) -> (value, scc)."""

    def __init__(self, name, form, result, sources, function, reads_dst=False):
        self.name, self.form, self.result, self.sources, self.function = name, form, result, sources, function
        self.reads_dst = reads_dst


def define(name, form, result, sources, function, **flags):
    TABLE[name] = Row(name, form, result, sources, function, **flags)


def run(state, inst):
    row = TABLE[inst.name]
    operands = list(inst.o)
    dst = operands.pop(0) if row.result else None
    values = [raw(state, o, kind, 0) if kind != "k" else o.index & 0xFFFF for o, kind in zip(operands, row.sources)]
    if row.reads_dst:
        values.append(raw(state, dst, row.result, 0))
    value, scc = row.function(state, *values)
    if dst is not None and value is not None:
        if row.result == "q":
            state.set_s64(dst.index, value & M64)
        else:
            state.s[dst.index] = value & M32
    if scc is not UNSET:
        state.scc = int(bool(scc))


def s32(x):
    return signed(x, 32)


def nonzero(function, mask):
    """SCC = result != 0."""

    def lane(state, *x):
        value = function(*x) & mask
        return value, value != 0

    return lane


def plain(function):
    return lambda state, *x: (function(*x), UNSET)


for _bits, _k, _mask in (("b32", "u", M32), ("b64", "q", M64)):
    for _name, _fn in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b),
                       ("andn2", lambda a, b: a & ~b), ("orn2", lambda a, b: a | ~b), ("nand", lambda a, b: ~(a & b)),
                       ("nor", lambda a, b: ~(a | b)), ("xnor", lambda a, b: ~(a ^ b))):
        define(f"s_{_name}_{_bits}", "sop2", _k, _k * 2, nonzero(_fn, _mask))
    define(f"s_not_{_bits}", "sop1", _k, _k, nonzero(lambda a: ~a, _mask))
    define(f"s_mov_{_bits}", "sop1", _k, _k, plain(lambda a: a))
    define(f"s_cmov_{_bits}", "sop1", _k, _k, lambda st, a: (a if st.scc else None, UNSET))
    define(f"s_cselect_{_bits}", "sop2", _k, _k * 2, lambda st, a, b: (a if st.scc else b, UNSET))
    _n = 32 if _k == "u" else 64
    define(f"s_brev_{_bits}", "sop1", _k, _k, plain(lambda a, n=_n: reverse(a, n)))
    define(f"s_lshl_{_bits}", "sop2", _k, _k + "u", nonzero(lambda a, b, n=_n: a << (b & n - 1), _mask))
    define(f"s_lshr_{_bits}", "sop2", _k, _k + "u", nonzero(lambda a, b, n=_n: a >> (b & n - 1), _mask))
    define(f"s_ashr_i{_n}", "sop2", _k, _k + "u", nonzero(lambda a, b, n=_n: signed(a, n) >> (b & n - 1), _mask))
    define(f"s_bfm_{_bits}", "sop2", _k, "uu", plain(lambda a, b, n=_n: ((1 << (a & n - 1)) - 1) << (b & n - 1)))
    define(f"s_bfe_u{_n}", "sop2", _k, _k + "u",
           nonzero(lambda a, b, n=_n: a >> (b & n - 1) & ((1 << min(b >> 16 & 127, n)) - 1), _mask))
    define(f"s_bfe_i{_n}", "sop2", _k, _k + "u", nonzero(
        lambda a, b, n=_n: signed(signed(a, n) >> (b & n - 1), min(b >> 16 & 127, n)) if b >> 16 & 127 else 0, _mask))
    define(f"s_bcnt0_i32_{_bits}", "sop1", "u", _k, nonzero(lambda a, n=_n: n - popcount(a), M32))
    define(f"s_bcnt1_i32_{_bits}", "sop1", "u", _k, nonzero(popcount, M32))
    define(f"s_ff0_i32_{_bits}", "sop1", "u", _k, plain(lambda a, m=_mask: first_low(~a & m)))
    define(f"s_ff1_i32_{_bits}", "sop1", "u", _k, plain(first_low))
    define(f"s_flbit_i32_{_bits}", "sop1", "u", _k, plain(lambda a, n=_n: n - a.bit_length() if a else M32))
    define(f"s_wqm_{_bits}", "sop1", _k, _k, nonzero(
        lambda a, n=_n: sum(15 << i for i in range(0, n, 4) if a >> i & 15), _mask))
    define(f"s_quadmask_{_bits}", "sop1", _k, _k, nonzero(
        lambda a, n=_n: sum(1 << i // 4 for i in range(0, n, 4) if a >> i & 15), _mask))
    define(f"s_bitset0_{_bits}", "sop1", _k, "u", plain(lambda a, d, n=_n: d & ~(1 << (a & n - 1))), reads_dst=True)
    define(f"s_bitset1_{_bits}", "sop1", _k, "u", plain(lambda a, d, n=_n: d | 1 << (a & n - 1)), reads_dst=True)
    define(f"s_bitcmp0_{_bits}", "sopc", "", _k + "u", lambda st, a, b, n=_n: (None, not a >> (b & n - 1) & 1))
    define(f"s_bitcmp1_{_bits}", "sopc", "", _k + "u", lambda st, a, b, n=_n: (None, a >> (b & n - 1) & 1))

define("s_flbit_i32", "sop1", "u", "u", plain(first_high_signed))
define("s_flbit_i32_i64", "sop1", "u", "q",
       plain(lambda a: 64 - (a ^ M64 if a >> 63 else a).bit_length() if a not in (0, M64) else M32))
define("s_sext_i32_i8", "sop1", "u", "u", plain(lambda a: signed(a, 8)))
define("s_sext_i32_i16", "sop1", "u", "u", plain(lambda a: signed(a, 16)))
define("s_abs_i32", "sop1", "u", "u", nonzero(lambda a: abs(s32(a)), M32))
define("s_bitreplicate_b64_b32", "sop1", "q", "u", plain(lambda a: sum(3 << 2 * i for i in range(32) if a >> i & 1)))

define("s_add_u32", "sop2", "u", "uu", lambda st, a, b: (a + b, a + b > M32))
define("s_sub_u32", "sop2", "u", "uu", lambda st, a, b: (a - b, b > a))
define("s_addc_u32", "sop2", "u", "uu", lambda st, a, b: (a + b + st.scc, a + b + st.scc > M32))
define("s_subb_u32", "sop2", "u", "uu", lambda st, a, b: (a - b - st.scc, b + st.scc > a))


def overflowing(function):
    def lane(state, a, b):
        exact = function(s32(a), s32(b))
        return exact, exact != s32(exact)

    return lane


define("s_add_i32", "sop2", "u", "uu", overflowing(lambda a, b: a + b))
define("s_sub_i32", "sop2", "u", "uu", overflowing(lambda a, b: a - b))
define("s_min_i32", "sop2", "u", "uu", lambda st, a, b: (min(s32(a), s32(b)), s32(a) < s32(b)))
define("s_max_i32", "sop2", "u", "uu", lambda st, a, b: (max(s32(a), s32(b)), s32(a) >= s32(b)))
define("s_min_u32", "sop2", "u", "uu", lambda st, a, b: (min(a, b), a < b))
define("s_max_u32", "sop2", "u", "uu", lambda st, a, b: (max(a, b), a >= b))
define("s_mul_i32", "sop2", "u", "uu", plain(lambda a, b: a * b))
define("s_mul_hi_u32", "sop2", "u", "uu", plain(lambda a, b: a * b >> 32))
define("s_mul_hi_i32", "sop2", "u", "uu", plain(lambda a, b: s32(a) * s32(b) >> 32))
define("s_absdiff_i32", "sop2", "u", "uu", nonzero(lambda a, b: abs(s32(s32(a) - s32(b))), M32))
define("s_pack_ll_b32_b16", "sop2", "u", "uu", plain(lambda a, b: a & 65535 | b << 16))
define("s_pack_lh_b32_b16", "sop2", "u", "uu", plain(lambda a, b: a & 65535 | b & 0xFFFF0000))
define("s_pack_hh_b32_b16", "sop2", "u", "uu", plain(lambda a, b: a >> 16 | b & 0xFFFF0000))
for _shift in (1, 2, 3, 4):
    define(f"s_lshl{_shift}_add_u32", "sop2", "u", "uu",
           lambda st, a, b, n=_shift: ((a << n) + b, (a << n) + b > M32))

for _name, _fn in (("eq", lambda a, b: a == b), ("lg", lambda a, b: a != b), ("gt", lambda a, b: a > b),
                   ("ge", lambda a, b: a >= b), ("lt", lambda a, b: a < b), ("le", lambda a, b: a <= b)):
    define(f"s_cmp_{_name}_i32", "sopc", "", "uu", lambda st, a, b, f=_fn: (None, f(s32(a), s32(b))))
    define(f"s_cmp_{_name}_u32", "sopc", "", "uu", lambda st, a, b, f=_fn: (None, f(a, b)))
    define(f"s_cmpk_{_name}_i32", "sopk_compare", "", "uk", lambda st, a, b, f=_fn: (None, f(s32(a), signed(b, 16))))
    define(f"s_cmpk_{_name}_u32", "sopk_compare", "", "uk", lambda st, a, b, f=_fn: (None, f(a, b)))
define("s_cmp_eq_u64", "sopc", "", "qq", lambda st, a, b: (None, a == b))
define("s_cmp_lg_u64", "sopc", "", "qq", lambda st, a, b: (None, a != b))
define("s_movk_i32", "sopk", "u", "k", plain(lambda k: signed(k, 16)))
define("s_cmovk_i32", "sopk", "u", "k", lambda st, k: (signed(k, 16) if st.scc else None, UNSET))
define("s_addk_i32", "sopk", "u", "k", lambda st, k, d: overflowing(lambda a, b: a + b)(st, signed(k, 16) & M32, d),
       reads_dst=True)
define("s_mulk_i32", "sopk", "u", "k", plain(lambda k, d: signed(k, 16) * s32(d)), reads_dst=True)


def save_exec(name, function):
    def lane(state, source):
        old = state.exec
        state.exec = function(source, old) & M64
        return old, state.exec != 0

    define(name, "sop1", "q", "q", lane)


def write_exec(name, function):
    def lane(state, source):
        state.exec = function(source, state.exec) & M64
        return state.exec, state.exec != 0

    define(name, "sop1", "q", "q", lane)


save_exec("s_and_saveexec_b64", lambda s, e: s & e)
save_exec("s_or_saveexec_b64", lambda s, e: s | e)
save_exec("s_xor_saveexec_b64", lambda s, e: s ^ e)
save_exec("s_andn2_saveexec_b64", lambda s, e: s & ~e)
save_exec("s_orn2_saveexec_b64", lambda s, e: s | ~e)
save_exec("s_nand_saveexec_b64", lambda s, e: ~(s & e))
save_exec("s_nor_saveexec_b64", lambda s, e: ~(s | e))
save_exec("s_xnor_saveexec_b64", lambda s, e: ~(s ^ e))
save_exec("s_andn1_saveexec_b64", lambda s, e: ~s & e)
save_exec("s_orn1_saveexec_b64", lambda s, e: ~s | e)
write_exec("s_andn1_wrexec_b64", lambda s, e: ~s & e)
write_exec("s_andn2_wrexec_b64", lambda s, e: s & ~e)
