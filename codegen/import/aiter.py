"""AITER's attention forward and backward for gfx950, from an installed amd-aiter wheel, as a manifest that flydsl-aot-pack takes beside our own.

usage: python3 codegen/import/aiter.py --from FOLDER --readelf llvm-readelf-22 --out FOLDER
`--from`: where the wheel is installed (it holds aiter_meta/), "" to ask this Python for it.

What each object takes is described here and held against its own metadata; an object whose arguments have moved is refused. How they are
launched is v2src/attention_forward_aiter.cc and v2src/attention_backward_aiter.cc.
"""

import argparse
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from describe.attention_backward.keys import PASSES  # noqa: E402
from describe.model import DTYPES  # noqa: E402
from describe.registry import OPERATORS  # noqa: E402
from generate.layout import hex64, pack_key  # noqa: E402

ARCH = "gfx950"
FOLDER = f"aiter_meta/hsa/{ARCH}"


class Layout:
    """Arguments: name, offset. A value of 4 bytes, or a pointer of 8, at the begin of a slot of 16."""

    def __init__(self, names, kernarg_bytes):
        self.arguments = [(name, 16 * slot) for slot, name in enumerate(names.split())]
        self.kernarg_bytes = kernarg_bytes
        # As the layout ids of docs/archive-format.md.
        text = "".join(f"{name} @{offset}\n" for name, offset in self.arguments)
        self.id = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


FORWARD = Layout(
    "R Q K V LSE scalar seq_len Seqs Ts Hs Bs gqa k_Seqs k_Hs k_Bs msk_opt lse kv_seq_len qk_head_dim v_head_dim q_head_num "
    "v_Seqs v_Hs v_Bs r_Seqs r_Hs r_Bs ptr_qseq ptr_kseq lse_Hs ptr_qseq_padding ptr_kseq_padding",
    512,
)
BACKWARD = Layout(
    "dQ dK dV Q K V dO Lse D scalar log2e seqlen_q Ts Hs_q BAs_q Seqs_q ratio Hs_k BAs_k Seqs_k Seqs_dk seqlen_k head_dim_q head_dim_k nhead_q "
    "Hs_v BAs_v Seqs_v Hs_do BAs_do Seqs_do Hs_dk BAs_dk Hs_dv BAs_dv Seqs_dv Hs_lsed ptr_seqstart_q ptr_seqstart_k ptr_seqstart_q_padded "
    "ptr_seqstart_k_padded max_seq_len_dq mask_x mask_y",
    704,
)


@dataclass(frozen=True)
class Object:
    """`mask`: value of the functional key's field of that name for problems that the object takes (v2src/*_aiter.h)."""

    op: str
    folder: str
    stem: str
    layout: Layout
    dtype: str
    head_dims: tuple
    mask: int
    tile: tuple
    work_items: int
    key: tuple = ()

    @property
    def name(self):
        return f"{self.op}_aiter_{self.stem}"

    def functional_key(self):
        op = next(op for op in OPERATORS if op.name == self.op)
        values = {"dtype": DTYPES[self.dtype], "head_dim_qk": self.head_dims[0], "head_dim_v": self.head_dims[1], "mask": self.mask, **dict(self.key)}
        return hex64(pack_key(op, values))


def _forward(stem, head_dims, causal, rows, work_items):
    """Tile: rows, row tiles of a work-group."""
    return Object("attention_forward", "fmha_v3_fwd", stem, FORWARD, "bf16", head_dims, 9 if causal else 8, (rows, 2 if causal else 1, 0), work_items)


def _backward(dtype, head_dims, causal, keys, ending):
    """Tile: key tiles of a work-group, keys of one. dq's sums in fp32."""
    dims = "hd128" if head_dims == (128, 128) else "hd192_hd128"
    stem = f"bwd_{dims}_{dtype}{'_causal' if causal else ''}_a32_{ending}"
    tile = (2 if causal else 1, keys, 0)
    return Object("attention_backward", "fmha_v3_bwd", stem, BACKWARD, dtype, head_dims, 9 if causal else 8, tile, 256, (("pass", PASSES["fused"]),))


# Not the causal ones for gradients of head dim 128: between a work-group's two key tiles they have no barrier, so that a wave that is ahead
# sets LDS to 0 where another still reads its dk.
OBJECTS = (
    _forward("fwd_hd128_bf16", (128, 128), False, 256, 512),
    _forward("fwd_hd128_bf16_causal", (128, 128), True, 256, 512),
    _forward("fwd_hd192_hd128_bf16", (192, 128), False, 128, 256),
    _forward("fwd_hd192_hd128_bf16_causal", (192, 128), True, 128, 256),
    *(_backward(dtype, (128, 128), False, 256, "psskddv") for dtype in ("bf16", "fp16")),
    *(_backward(dtype, (192, 128), causal, 192, "pssk") for dtype in ("bf16", "fp16") for causal in (False, True)),
)


def _number(notes, name, absent=None):
    found = re.findall(rf"^\s+(?:- )?\.{name}:\s+(\d+)$", notes, re.MULTILINE)
    if not found and absent is not None:
        return absent
    if len(found) != 1:
        raise ValueError(f"expected one .{name} in the metadata, found {len(found)}")
    return int(found[0])


def check_arguments(notes, layout):
    """Refuses an object whose arguments are not those described."""
    arguments = re.findall(r"^\s+(?:- )?\.name:\s+(\w+)\n\s+\.offset:\s+(\d+)", notes, re.MULTILINE)
    seen = [(name, int(offset)) for name, offset in arguments if name != "pad"]
    if seen != layout.arguments:
        raise ValueError(f"takes other arguments than described: {seen}")
    if _number(notes, "kernarg_segment_size") != layout.kernarg_bytes:
        raise ValueError(f"has {_number(notes, 'kernarg_segment_size')} bytes of arguments, not {layout.kernarg_bytes}")


def metadata(notes, layout):
    symbol = re.findall(r"^\s+(?:- )?\.symbol:\s+(\S+)\.kd$", notes, re.MULTILINE)
    if len(symbol) != 1:
        raise ValueError("has not just one kernel")
    check_arguments(notes, layout)
    return {
        "symbol": symbol[0],
        "target_id": ARCH,  # their metadata names none; by the folder, and the ELF header says so
        "kernarg_bytes": layout.kernarg_bytes,
        "lds_static_bytes": _number(notes, "group_segment_fixed_size"),
        "scratch_bytes": _number(notes, "private_segment_fixed_size"),
        "vgpr_count": _number(notes, "vgpr_count"),
        "sgpr_count": _number(notes, "sgpr_count"),
        "wave_size": _number(notes, "wavefront_size"),
        "vgpr_spill_count": _number(notes, "vgpr_spill_count", 0),
        "sgpr_spill_count": _number(notes, "sgpr_spill_count", 0),
        "max_flat_workgroup_size": _number(notes, "max_flat_workgroup_size"),
    }


def installed():
    """Where this Python has the wheel."""
    found = importlib.util.find_spec("aiter_meta")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("amd-aiter is not installed for this Python: pip install amd-aiter, or name its folder")
    return Path(next(iter(found.submodule_search_locations))).parent


def licence_of(folder):
    """Text of the wheel's licence; what is known of it where only its members are there."""
    for path in sorted(folder.glob("amd_aiter-*.dist-info/LICENSE")) + sorted(folder.glob("amd_aiter-*.dist-info/licenses/LICENSE")):
        return path.read_text()
    return "AITER (amd-aiter), Copyright Advanced Micro Devices, Inc.: MIT, see https://github.com/ROCm/aiter/blob/main/LICENSE\n"


def import_objects(folder, readelf, out):
    out.mkdir(parents=True, exist_ok=True)
    kernels, selection = [], []
    for item in OBJECTS:
        source = folder / FOLDER / item.folder / f"{item.stem}.co"
        if not source.is_file():
            raise SystemExit(f"{source}: not there; is this where amd-aiter is installed?")
        notes = subprocess.run([readelf, "--notes", str(source)], check=True, capture_output=True, text=True).stdout
        try:
            values = metadata(notes, item.layout)
        except ValueError as error:
            raise SystemExit(f"{source}: {error}") from None
        shutil.copyfile(source, out / f"{item.name}.co")
        (out / f"{item.name}.co.json").write_text(json.dumps(values, indent=1) + "\n")
        key = item.functional_key()
        kernels.append({
            "name": item.name, "op": item.op, "backend": "aiter", "symbol": values["symbol"], "grid_rule": "linear_tiles",
            "block": [item.work_items, 1, 1], "tile": list(item.tile), "lds_dynamic_bytes": 0,
            "kernarg_layout_id": hex64(item.layout.id), "functional_key": key, "object": f"{item.name}.co",
        })
        selection.append({
            "op": item.op, "functional_key": key,
            "candidates": [{"kernel": item.name, "align_bytes": 16, "seq_q": [1, 1 << 30], "seq_k": [1, 1 << 30]}],
        })
    document = {"arch": ARCH, "licence": licence_of(folder), "kernels": kernels, "selection": selection}
    (out / "manifest.json").write_text(json.dumps(document, indent=1) + "\n")
    (out / "LICENSE.aiter").write_text(document["licence"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="folder", default="")
    parser.add_argument("--readelf", required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    folder = Path(arguments.folder) if arguments.folder else installed()
    import_objects(folder, arguments.readelf, arguments.out)


if __name__ == "__main__":
    main()
