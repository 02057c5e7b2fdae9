"""What rms_norm_backward and layer_norm_backward share: kernel arguments, functional key, passes and instances.

Rows that registers or LDS hold: `rows`, then `totals` of weights. Else `sums`, `columns`, `totals`.
"""

from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator, Table
from .rows import ARCHITECTURES, BYTES, HELD_ARCHITECTURES, LARGEST_ROW, REALS, Spread

_ARGUMENTS = (
    Argument("const void *", "x"),
    Argument("const void *", "dout"),
    Argument("const void *", "dsum", "null: none"),
    Argument("const void *", "weight", "null: 1"),
    Argument("const float *", "rstd"),
    Argument("void *", "dx", "null: not wanted"),
    Argument("void *", "dweight", "null: not wanted"),
    Argument("float *", "dweight_sums", "of slots of rows, a row each; null: not wanted"),
    Argument("float *", "row_sums", "of each row and part"),
    *(stride for tensor in ("x", "dout", "dsum", "dx") for stride in strides(tensor, "oi", "bytes")),
    *strides("rstd", "oi"),
    Argument("uint64_t", "rows", "outer times inner"),
    Argument("uint64_t", "rows_inner"),
    Argument("uint64_t", "slots", "of rows, whose sums are one row of dweight_sums"),
    Argument("uint64_t", "tiles", "parts of rows, of slots or of columns: work for the work-groups"),
    Argument("uint32_t", "slot_rows", "of one team"),
    Argument("uint32_t", "groups", "work-groups"),
    Argument("uint32_t", "row_length"),
    Argument("uint32_t", "parts", "of a row, in row_sums"),
    Argument("uint32_t", "part_length"),
    Argument("uint32_t", "column_tiles"),
    Argument("float", "weight_offset", "1 of gemma-style weights, else 0"),
    Argument("uint32_t", "weight_dtype", "flydsl_aot_dtype"),
    Argument("uint32_t", "dweight_dtype", "flydsl_aot_dtype"),
)

ROWS, SUMS, COLUMNS, TOTALS = range(4)
_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype of x; 0 of totals"),
    KeyField("pass", 8, 2, "0 rows, 1 sums, 2 columns, 3 totals"),
)

# Sums over rows take twice the registers of a row: fewer elements a thread than norms have, and registers for two waves.
_SPREADS = (
    Spread(256, 16, 1),
    Spread(256, 64, 1),
    Spread(128, 64, 2),
    Spread(128, 128, 2),
    Spread(256, 256, 2),
    Spread(512, 512, 2),
    Spread(256, 32, 1, wide=False),
    Spread(256, 256, 1, wide=False),
)
# Longer rows, held in LDS (kernels/common/norm_backward_held), and how many at once on sm_90.
_HELD_SPREADS = ((Spread(512, 512, 4), 2), (Spread(512, 512, 8), 1))
_SUMS = (Spread(256, 256, 2), Spread(256, 256, 1, wide=False))
_COLUMNS = (Spread(256, 256, 1), Spread(256, 256, 1, wide=False))
# Of one team in a slot: as many fp32 numbers are added one after another.
MOST_ROWS = 128
_TOTALS_THREADS, _TOTALS_COLUMNS = 1024, 16


def _instance(operator, name, entry, dtype, number, preference, spread, tile, waves_per_simd=4, capacity=LARGEST_ROW, lds_dynamic_bytes=0):
    return Instance(
        name=f"{operator}_{name}",
        header=f"{operator}/{operator}.hip.h",
        entry=f"{operator}_{entry}",
        key=(("dtype", dtype), ("pass", number)),
        preference=preference,
        align_bytes=spread.align_bytes,
        block=(spread.threads, 1, 1),
        tile=tile,
        lds_dynamic_bytes=lds_dynamic_bytes,
        waves_per_simd=waves_per_simd,
        seq_q=(1, (1 << 62)),
        seq_k=(1, capacity),
    )


def _held_instances_of(operator, dtype, arch):
    if arch not in HELD_ARCHITECTURES:
        return
    nvidia = arch.startswith("sm_")
    for preference, (spread, places) in enumerate(_HELD_SPREADS, len(_SPREADS)):
        # Sums of dbias, too, are more than registers hold.
        if operator == "layer_norm_backward" and spread.capacity(dtype) > 32 * spread.team:
            continue
        entry = f"held_rows<{spread.threads}, {spread.tile(dtype)}, {places}>"
        row_bytes = 2 * spread.capacity(dtype) * BYTES[dtype]
        name = f"{dtype}_{spread.name}_held"
        capacity = spread.capacity(dtype)
        dynamic = places * row_bytes if nvidia else 0
        yield _instance(operator, name, entry, REALS[dtype], ROWS, preference, spread, (1, 0, 0), 2, capacity, dynamic)


def _instances_of(operator, dtype):
    number = REALS[dtype]
    for preference, spread in enumerate(_SPREADS):
        entry = f"rows<{spread.threads}, {spread.tile(dtype)}>"
        tile = (spread.threads // spread.team, 0, 0)
        yield _instance(operator, f"{dtype}_{spread.name}", entry, number, ROWS, preference, spread, tile, 2, spread.capacity(dtype))
    for preference, spread in enumerate(_SUMS):
        entry = f"sums<{spread.threads}, {spread.tile(dtype)}>"
        name = f"{dtype}_sums{'' if spread.wide else '_narrow'}"
        yield _instance(operator, name, entry, number, SUMS, preference, spread, (1, 0, 0))
    for preference, spread in enumerate(_COLUMNS):
        entry = f"columns<{spread.threads}, {spread.tile(dtype)}, {MOST_ROWS}>"
        name = f"{dtype}_columns{'' if spread.wide else '_narrow'}"
        yield _instance(operator, name, entry, number, COLUMNS, preference, spread, (1, spread.capacity(dtype), 0), 3)


def operator(name, arguments=()):
    """`arguments`: those of this operator only."""

    def instances(arch):
        if arch not in ARCHITECTURES:
            return ()
        totals = _instance(
            name,
            "totals",
            f"totals<{_TOTALS_THREADS}, {_TOTALS_COLUMNS}>",
            0,
            TOTALS,
            0,
            Spread(_TOTALS_THREADS, _TOTALS_THREADS, 1, wide=False),
            (1, _TOTALS_COLUMNS, 0),
        )
        of_rows = (
            instance
            for dtype in REALS
            for instances in (_instances_of(name, dtype), _held_instances_of(name, dtype, arch))
            for instance in instances
        )
        return (*of_rows, totals)

    return Operator(
        name=name,
        grid_rule="persistent",
        arguments=(*_ARGUMENTS, *arguments),
        key_fields=_KEY_FIELDS,
        instances=instances,
        compiled=instances,
        tables=(
            Table(
                "columns",
                "X(dtype, columns of a tile).",
                tuple((number, _COLUMNS[0].capacity(dtype)) for dtype, number in REALS.items()),
            ),
            Table("most_rows", "X(rows of one team in a slot).", ((MOST_ROWS,),)),
        ),
    )
