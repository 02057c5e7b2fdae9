"""What instances of every family share: element types, masks, the functional key, limits of lengths."""

from ..model import DTYPES, KeyField

KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype"),
    KeyField("head_dim_qk", 8, 12, "of the class"),
    KeyField("head_dim_v", 20, 12, "of the class"),
    KeyField("mask", 32, 4, "0 none, 1 bounded on the right, 2 on the left too; 0 for the general instance"),
    KeyField("general", 36, 1, "1: for problems with any feature: the class's instance for 16-bit elements, or the general one"),
    KeyField("float8", 37, 1, "1: q, k and v are e4m3, descaled or not; 0 for the general instance"),
    KeyField("padded", 38, 1, "1: the instance takes head dims less by 8, 16 or 24 too; 0 for the general instance, which takes any"),
    KeyField("many_rows", 39, 1, "1: for problems with enough rows, over all heads and sequences, to fill the device"),
)

MASKS = {"none": 0, "causal": 1, "window": 2}
ELEMENTS = {"bf16": "bf16", "fp16": "fp16"}  # name -> element type in kernels/common/
KEYS = 64  # of a tile
LENGTHS = (0, 1 << 30)


def key(dtype, head_dim_qk, head_dim_v, **others):
    return (("dtype", DTYPES[dtype]), ("head_dim_qk", head_dim_qk), ("head_dim_v", head_dim_v), *others.items())
