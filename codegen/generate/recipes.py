"""compiled/: what the library may compile at run time (src/jit/): a table of instances, and the source of each."""

from describe.rows import ARCHITECTURES, wave_size

from .instances import source
from .layout import functional_key, hex64, layout_id, offsets
from .output import banner

# The columns of recipes.tsv, as src/jit/sources.cc reads them.
COLUMNS = (
    "archs op name source grid_rule kernarg_layout_id kernarg_bytes block_x block_y block_z tile_0 tile_1 tile_2 lds_dynamic_bytes "
    "wave_size functional_key align_bytes seq_q_min seq_q_max seq_k_min seq_k_max"
).split()
TABLE = "compiled/recipes.tsv"


def _instances(op):
    """{(instance, wave size): architectures}, best first of each key."""
    found = {}
    for arch in ARCHITECTURES:
        if arch.startswith("gfx"):
            for instance in op.compiled(arch):
                found.setdefault((instance, wave_size(arch)), []).append(arch)
    return sorted(found.items(), key=lambda item: (functional_key(op, item[0][0]), item[0][0].preference, item[0][0].name, item[1]))


def _row(op, instance, wave, archs, path):
    return (
        ",".join(archs),
        op.name,
        instance.name,
        path,
        op.grid_rule,
        hex64(layout_id(op)),
        offsets(op)[1],
        *instance.block,
        *instance.tile,
        instance.lds_dynamic_bytes,
        wave,
        hex64(functional_key(op, instance)),
        instance.align_bytes,
        *instance.seq_q,
        *instance.seq_k,
    )


def files(operators):
    """{path: text} of the table and the sources. Instances of one name that differ with the architecture have a source each."""
    result, rows = {}, []
    for op in operators:
        for (instance, wave), archs in _instances(op):
            text = source(op, instance)
            path = f"{op.name}/{instance.name}.hip"
            while result.setdefault(f"compiled/{path}", text) != text:
                path = path.removesuffix(".hip") + "_.hip"
            rows.append(_row(op, instance, wave, archs, path))
    lines = [f"# {banner()}", "\t".join(COLUMNS), *("\t".join(map(str, row)) for row in rows)]
    result[TABLE] = "\n".join(lines) + "\n"
    return result
