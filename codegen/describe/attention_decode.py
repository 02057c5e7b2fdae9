"""attention_decode: kernel arguments, functional key, head-dim classes and instances.

A new class of head dims is one more row of _CLASSES, a new tile of rows one more shape of a row.
"""

from dataclasses import dataclass, replace
from typing import Tuple

from . import architectures
from .attention_arguments import strides
from .model import DTYPES, Argument, Instance, KeyField, Operator, Table


_ARGUMENTS = (
    Argument("const void *", "q"),
    Argument("const void *", "k"),
    Argument("const void *", "v"),
    Argument("void *", "out"),
    Argument("float *", "lse", "null: not wanted"),
    *strides("q", "bhs"),
    *(stride for tensor in ("k", "v") for stride in strides(tensor, "bhs", "bytes")),
    *(stride for tensor in ("out", "lse") for stride in strides(tensor, "bhs")),
    Argument("uint32_t", "kv_format", "of keys and values: kernels/common/float8.hip.h"),
    Argument("const int32_t *", "seqused_k", "null: all keys"),
    Argument("const int32_t *", "block_table", "null: keys are not paged; else k_stride_b is that of blocks"),
    *strides("block_table", "b"),
    Argument("uint32_t", "block_shift", "keys of a block are 2^this"),
    Argument("int32_t", "last_block", "numbers in the table are clamped to [0, last_block]"),
    Argument("uint32_t", "batches"),
    Argument("uint32_t", "heads_kv"),
    Argument("uint32_t", "heads_per_kv", "query heads that share a key head"),
    Argument("int32_t", "seq_q"),
    Argument("int32_t", "seq_k", "the longest"),
    Argument("uint32_t", "head_dim_qk"),
    Argument("uint32_t", "head_dim_v"),
    Argument("uint32_t", "row_tiles", "ceil(heads_per_kv * seq_q / tile[0])"),
    Argument("uint32_t", "rows_of_tile", "tile[0]"),
    Argument("uint32_t", "rows_of_slot", "of a partial result: as many, or fewer if the pair has fewer"),
    Argument("uint32_t", "workers", "work-groups that share the keys"),
    Argument("uint32_t", "reduce_grid_x", "of the second pass"),
    Argument("uint32_t", "waves_of_row", "of the second pass: 1 or 4"),
    Argument("int32_t", "window_left", "in [0, 2^30], or -1: unlimited"),
    Argument("int32_t", "window_right", "in [0, 2^30], or -1: unlimited"),
    Argument("uint32_t", "bottom_right", "1: bounds count from key i + keys - seq_q, 0: from key i"),
    Argument("float", "scale_log2", "|scale| * log2(e), > 0; 1 when scale is 0"),
    Argument("float", "scale_sign", "-1, 0 or 1"),
    Argument("uint32_t", "score_terms", "1: softcap, ALiBi or sinks"),
    Argument("float", "softcap_ratio", "|scale| / softcap"),
    Argument("float", "softcap_log2", "softcap * log2(e); 0: none"),
    Argument("const float *", "alibi_slopes", "null: none"),
    *strides("alibi", "bh"),
    Argument("const float *", "sinks", "null: none"),
    *strides("sinks", "h"),
    Argument("const float *", "k_descale", "of 8-bit keys; null: 1"),
    *strides("k_descale", "bh"),
    Argument("const float *", "v_descale", "of 8-bit values; null: 1"),
    *strides("v_descale", "bh"),
    Argument("void *", "partial_heads", "16 bytes a slot and row"),
    Argument("void *", "partial_outs", "head_dim_v floats a slot and row"),
    Argument("uint32_t", "equal_tiles", "of every sequence; 0: they differ, or only the device knows"),
    Argument("uint32_t", "equal_share", "of equal_tiles: units of a worker"),
    Argument("uint32_t", "larger_shares", "the first workers, this many, have one unit more"),
    Argument("uint64_t", "by_equal_share", "as all that follow: the divisor as the device's quotient() wants it"),
    Argument("uint64_t", "by_larger_share"),
    Argument("uint64_t", "by_equal_tiles"),
    Argument("uint64_t", "by_pairs", "of a sequence: heads_kv * row_tiles"),
    Argument("uint64_t", "by_group_rows", "heads_per_kv * seq_q"),
    Argument("uint64_t", "by_heads_kv"),
    Argument("uint64_t", "by_rows_of_tile"),
    Argument("uint64_t", "by_seq_q"),
)

_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype of q and out"),
    KeyField("head_dim_qk", 8, 12, "of the class; 0 for the second pass"),
    KeyField("head_dim_v", 20, 12, "of the class"),
    KeyField("row_blocks", 32, 4, "tiles have 16 times as many rows; 0 for the second pass"),
    KeyField("kv_format", 36, 2, "0 as q, 1 e4m3, 2 e5m2; 0 for the second pass"),
    KeyField("shared", 38, 1, "1: values are the first elements of the keys"),
)

_ELEMENTS = {"bf16": "bf16", "fp16": "fp16"}  # name -> element type in kernels/common/
_FORMATS = ("wide", "e4m3", "e5m2")  # by number, as in kernels/common/float8.hip.h
_KEYS = 32
_LARGEST_LENGTH = 1 << 30


@dataclass(frozen=True)
class _Shape:
    """How a work-group cuts its work: kernels/attention_decode/shape.hip.h."""

    row_blocks: int  # of a wave
    waves: int
    tiles: int
    groups: int  # a compute unit: as many as registers and LDS let, so that enough copies are on their way

    @property
    def all_row_blocks(self):
        return self.row_blocks * self.waves


@dataclass(frozen=True)
class _Class:
    """Head dims up to these, stored in `formats`; `shared` as in _KEY_FIELDS. LDS of a work-group:
    64 * tiles * (D + Dv, or D if shared) * bytes of an element."""

    head_dim_qk: int
    head_dim_v: int
    formats: Tuple[int, ...]
    shapes: Tuple[_Shape, ...]
    shared: bool = False


# The first class that has room is taken.
_CLASSES = (
    _Class(64, 64, (0,), (_Shape(1, 1, 1, 8), _Shape(2, 1, 1, 8), _Shape(2, 2, 2, 4))),
    _Class(128, 128, (0,), (_Shape(1, 1, 1, 4), _Shape(2, 1, 1, 4), _Shape(2, 2, 2, 2), _Shape(2, 4, 4, 1))),
    _Class(192, 128, (0,), (_Shape(1, 1, 1, 4), _Shape(2, 1, 1, 4), _Shape(1, 4, 2, 2))),
    _Class(256, 256, (0,), (_Shape(1, 1, 1, 2), _Shape(1, 2, 1, 2), _Shape(1, 4, 1, 2))),
    _Class(64, 64, (1, 2), (_Shape(1, 1, 1, 8), _Shape(2, 1, 1, 8))),
    _Class(128, 128, (1, 2), (_Shape(1, 1, 1, 8), _Shape(2, 1, 1, 4))),
    _Class(256, 256, (1,), (_Shape(1, 1, 1, 4),)),
    _Class(
        576, 512, (0,), (_Shape(1, 1, 1, 2), _Shape(1, 2, 1, 2), _Shape(1, 4, 2, 1)), shared=True
    ),
    _Class(576, 512, (0,), (_Shape(1, 4, 1, 1),)),
    _Class(576, 512, (1,), (_Shape(1, 1, 1, 4), _Shape(1, 4, 2, 1)), shared=True),
)

# Further ones, that only run-time compilation has.
_COMPILED_CLASSES = (
    _Class(768, 512, (0,), (_Shape(1, 4, 1, 1),)),
    _Class(256, 256, (2,), (_Shape(1, 1, 1, 4),)),
    _Class(576, 512, (2,), (_Shape(1, 1, 1, 4), _Shape(1, 4, 2, 1)), shared=True),
    _Class(576, 512, (1, 2), (_Shape(1, 1, 1, 2),)),
)


def _shape_on(arch, kind, kv_format, shape):
    """With small LDS: keys and values in one buffer (kernels/attention_decode/tile_layout.hip.h), as many tiles as fit."""
    if arch == "gfx950":
        return shape
    tile_bytes = _KEYS * (max(kind.head_dim_qk, kind.head_dim_v) * (1 if kv_format else 2) + 16)
    lds_bytes, tiles = architectures.lds_bytes(arch), min(shape.tiles, 2)  # 4 would spill scalar registers
    while tiles * tile_bytes > lds_bytes:
        tiles //= 2
    groups = min(lds_bytes // (tiles * tile_bytes), max(1, 8 // shape.waves))  # with 256 registers
    return replace(shape, tiles=tiles, groups=groups)


_WIDEST_VALUES = (256, 512)  # of an instance of the second pass: 64 times what a lane holds


def _instance(dtype, name, header, entry, key, align_bytes, block, tile):
    return Instance(
        name=f"attention_decode_{dtype}_{name}",
        header=f"attention_decode/{header}.hip.h",
        entry=entry,
        key=(("dtype", DTYPES[dtype]), *key),
        preference=0,
        align_bytes=align_bytes,
        block=(block, 1, 1),
        tile=tile,
        lds_dynamic_bytes=0,
        waves_per_simd=max(1, block // 256),
        seq_q=(0, 16),
        seq_k=(0, _LARGEST_LENGTH),
    )


def _pass_over_keys(dtype, kind, kv_format, shape):
    qk, v = kind.head_dim_qk, kind.head_dim_v
    format_name = _FORMATS[kv_format]
    parts = (
        f"d{qk}" if qk == v else f"d{qk}x{v}",
        *((format_name,) if kv_format else ()),
        *(("shared",) if kind.shared else ()),
        f"m{16 * shape.all_row_blocks}n{_KEYS * shape.tiles}",
    )
    return _instance(
        dtype,
        name="_".join(parts),
        header="attention_decode",
        entry=f"attention_decode<Shape<{_ELEMENTS[dtype]}, Format::{format_name}, {qk}, {v}, {shape.row_blocks}, "
        f"{shape.waves}, {shape.tiles}, {str(kind.shared).lower()}>>",
        key=(
            ("head_dim_qk", qk),
            ("head_dim_v", v),
            ("row_blocks", shape.all_row_blocks),
            ("kv_format", kv_format),
            ("shared", int(kind.shared)),
        ),
        align_bytes=16,
        block=64 * shape.waves,
        tile=(16 * shape.all_row_blocks, _KEYS, shape.groups),
    )


def _second_pass(dtype, widest):
    return _instance(
        dtype,
        name=f"reduce_d{widest}",
        header="attention_decode_reduce",
        entry=f"attention_decode_reduce<{_ELEMENTS[dtype]}, {widest // 64}>",
        key=(("head_dim_v", widest),),
        align_bytes=2,
        block=256,
        tile=(1, 0, 0),
    )


def _instances_of(arch, classes):
    if arch not in architectures.MATRIX:
        return ()
    first = (
        _pass_over_keys(dtype, kind, kv_format, _shape_on(arch, kind, kv_format, shape))
        for dtype in _ELEMENTS
        for kind in classes
        for kv_format in kind.formats
        for shape in kind.shapes
    )
    return tuple(first) + tuple(_second_pass(dtype, widest) for dtype in _ELEMENTS for widest in _WIDEST_VALUES)


def _instances(arch):
    return _instances_of(arch, _CLASSES)


def _compiled(arch):
    return _instances_of(arch, _CLASSES + _COMPILED_CLASSES)


def _class_table(name, comment, classes):
    return Table(
        name,
        comment,
        tuple(
            (
                kv_format,
                kind.head_dim_qk,
                kind.head_dim_v,
                int(kind.shared),
                sum(1 << shape.all_row_blocks for shape in kind.shapes),
            )
            for kind in classes
            for kv_format in kind.formats
        ),
    )


OPERATOR = Operator(
    name="attention_decode",
    grid_rule="persistent",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    compiled=_compiled,
    tables=(
        _class_table(
            "classes", "X(kv_format, D, Dv, shared, row blocks that have instances, a bit each: 1 << row blocks).", _CLASSES
        ),
        _class_table("compiled_classes", "X(...), the same of further ones, whose kernels are compiled at run time.", _COMPILED_CLASSES),
        Table("widest_values", "X(Dv) of the instances of the second pass.", tuple((v,) for v in _WIDEST_VALUES)),
    ),
)
