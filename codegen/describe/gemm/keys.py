"""What instances of every family share: the functional key, tiles, limits."""

from ..model import KeyField

KEY_FIELDS = (
    KeyField("a_dtype", 0, 8, "flydsl_aot_dtype; general instance: bf16, fp16, fp32, or e4m3 for both 8-bit types"),
    KeyField("b_dtype", 8, 8, "the same; 0 unless pass is 0, as a_dtype and all that follow"),
    KeyField("tile", 16, 8, "TILES; 0 for the general instance"),
    KeyField("layout", 24, 2, "LAYOUTS; 0 for the general instance"),
    KeyField("pass", 26, 2, "PASSES"),
)

# Of fast instances. An operand's rows are those of A, the columns of B. `rows` contiguous: there are a multiple of 8 of
# them. Either way the other stride, times 512, is below 2^31 bytes.
LAYOUTS = {
    "kk": 0,  # K contiguous in A and in B: A row-major, B column-major
    "rk": 1,  # rows contiguous in A, K in B
    "kr": 2,
    "rr": 3,
}

# name -> (number, rows, columns) of a work-group's tile. The library weighs those that have instances for the operands' types
# (v2src/gemm_describe.cc) and looks the best three up before the general one.
TILES = {
    "general": (0, 128, 128),
    "m256n256": (1, 256, 256),
    "m128n128": (2, 128, 128),
    "m256n128": (3, 256, 128),
    "m128n256": (4, 128, 256),
    "m64n16": (5, 64, 16),
    "m32n16": (6, 32, 16),
    "m16n16": (7, 16, 16),
    "m32n32": (8, 32, 32),
    "m64n32": (9, 64, 32),
    "m128n128_alone": (10, 128, 128),
}
# Products; adds the parts of K and makes D of the sums; sums of rows or columns.
PASSES = {"products": 0, "second_pass": 1, "sums": 2}
K_GRANULE = 256  # of a part of K
SIZES = (0, 1 << 30)
DTYPES = {"fp32": 2, "fp16": 3, "bf16": 4, "e4m3": 10, "e5m2": 11}


def key(a_dtype, b_dtype, tile="general", layout="kk"):
    return (
        ("a_dtype", DTYPES[a_dtype]),
        ("b_dtype", DTYPES[b_dtype]),
        ("tile", TILES[tile][0]),
        ("layout", LAYOUTS[layout]),
    )
