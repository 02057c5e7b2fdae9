"""AITER's attention forward for gfx950, from an installed amd-aiter wheel, as a manifest that flydsl-aot-pack takes beside our own.

usage: python3 codegen/import/aiter.py --from FOLDER --readelf llvm-readelf-22 --out FOLDER
`--from`: where the wheel is installed (it holds aiter_meta/), "" to ask this Python for it.

What each object takes is described here and held against its own metadata; an object whose arguments have moved is refused. How they are
launched is v2src/attention_forward_aiter.cc.
"""

import argparse
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from describe.registry import OPERATORS  # noqa: E402
from generate.layout import hex64, pack_key  # noqa: E402

ARCH = "gfx950"
FOLDER = f"aiter_meta/hsa/{ARCH}/fmha_v3_fwd"
KERNARG_BYTES = 512
# name, offset: a value of 4 bytes, or a pointer of 8, at the begin of a slot of 16.
ARGUMENTS = tuple(
    (name, 16 * slot)
    for slot, name in enumerate(
        "R Q K V LSE scalar seq_len Seqs Ts Hs Bs gqa k_Seqs k_Hs k_Bs msk_opt lse kv_seq_len qk_head_dim v_head_dim q_head_num "
        "v_Seqs v_Hs v_Bs r_Seqs r_Hs r_Bs ptr_qseq ptr_kseq lse_Hs ptr_qseq_padding ptr_kseq_padding".split()
    )
)
# As the layout ids of docs/archive-format.md.
_TEXT = "".join(f"{name} @{offset}\n" for name, offset in ARGUMENTS)
LAYOUT_ID = int.from_bytes(hashlib.sha256(_TEXT.encode()).digest()[:8], "little")

# object: head dims, whether it is causal, rows of a tile, work-items
OBJECTS = {
    "fwd_hd128_bf16": (128, 128, False, 256, 512),
    "fwd_hd128_bf16_causal": (128, 128, True, 256, 512),
    "fwd_hd192_hd128_bf16": (192, 128, False, 128, 256),
    "fwd_hd192_hd128_bf16_causal": (192, 128, True, 128, 256),
}
# Values of the functional key's field `mask` for problems that these objects take (v2src/attention_forward_aiter.h).
MASK_NONE, MASK_CAUSAL = 8, 9


def key_of(head_dim_qk, head_dim_v, causal):
    op = next(op for op in OPERATORS if op.name == "attention_forward")
    values = {"dtype": 4, "head_dim_qk": head_dim_qk, "head_dim_v": head_dim_v, "mask": MASK_CAUSAL if causal else MASK_NONE}
    return hex64(pack_key(op, values))


def _number(notes, name, absent=None):
    found = re.findall(rf"^\s+(?:- )?\.{name}:\s+(\d+)$", notes, re.MULTILINE)
    if not found and absent is not None:
        return absent
    if len(found) != 1:
        raise ValueError(f"expected one .{name} in the metadata, found {len(found)}")
    return int(found[0])


def check_arguments(notes):
    """Refuses an object whose arguments are not those described."""
    arguments = re.findall(r"^\s+(?:- )?\.name:\s+(\w+)\n\s+\.offset:\s+(\d+)", notes, re.MULTILINE)
    seen = [(name, int(offset)) for name, offset in arguments if name != "pad"]
    if seen != list(ARGUMENTS):
        raise ValueError(f"takes other arguments than described: {seen}")
    if _number(notes, "kernarg_segment_size") != KERNARG_BYTES:
        raise ValueError(f"has {_number(notes, 'kernarg_segment_size')} bytes of arguments, not {KERNARG_BYTES}")


def metadata(notes):
    symbol = re.findall(r"^\s+(?:- )?\.symbol:\s+(\S+)\.kd$", notes, re.MULTILINE)
    if len(symbol) != 1:
        raise ValueError("has not just one kernel")
    check_arguments(notes)
    return {
        "symbol": symbol[0],
        "target_id": ARCH,  # their metadata names none; by the folder, and the ELF header says so
        "kernarg_bytes": KERNARG_BYTES,
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
    for stem, (head_dim_qk, head_dim_v, causal, rows, work_items) in OBJECTS.items():
        source = folder / FOLDER / f"{stem}.co"
        if not source.is_file():
            raise SystemExit(f"{source}: not there; is this where amd-aiter is installed?")
        notes = subprocess.run([readelf, "--notes", str(source)], check=True, capture_output=True, text=True).stdout
        try:
            values = metadata(notes)
        except ValueError as error:
            raise SystemExit(f"{source}: {error}") from None
        name = f"attention_forward_aiter_{stem}"
        shutil.copyfile(source, out / f"{name}.co")
        (out / f"{name}.co.json").write_text(json.dumps(values, indent=1) + "\n")
        key = key_of(head_dim_qk, head_dim_v, causal)
        kernels.append({
            "name": name, "op": "attention_forward", "backend": "aiter", "symbol": values["symbol"], "grid_rule": "linear_tiles",
            "block": [work_items, 1, 1], "tile": [rows, 2 if causal else 1, 0], "lds_dynamic_bytes": 0,
            "kernarg_layout_id": hex64(LAYOUT_ID), "functional_key": key, "object": f"{name}.co",
        })
        selection.append({
            "op": "attention_forward", "functional_key": key,
            "candidates": [{"kernel": name, "align_bytes": 16, "seq_q": [1, 1 << 30], "seq_k": [1, 1 << 30]}],
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
