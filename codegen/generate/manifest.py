"""manifest.json of one architecture: what the archive needs besides code-object metadata."""

import json

from describe.rows import EXECUTED_ARCHITECTURES

from .instances import object_path
from .layout import abi_id, functional_key, hex64, layout_id
from .output import banner
from .tuning import manifest_rows


def _kernel(op, instance):
    return {
        "name": instance.name,
        "op": op.name,
        "backend": "native",
        "symbol": instance.name,
        "grid_rule": op.grid_rule,
        "block": list(instance.block),
        "tile": list(instance.tile),
        "lds_dynamic_bytes": instance.lds_dynamic_bytes,
        "kernarg_layout_id": hex64(layout_id(op)),
        "functional_key": hex64(functional_key(op, instance)),
        "object": object_path(op, instance),
    }


def _selection(op, arch):
    by_key = {}
    for instance in op.instances(arch):
        by_key.setdefault(functional_key(op, instance), []).append(instance)
    return [
        {
            "op": op.name,
            "functional_key": hex64(key),
            "candidates": [
                {
                    "kernel": instance.name,
                    "align_bytes": instance.align_bytes,
                    "seq_q": list(instance.seq_q),
                    "seq_k": list(instance.seq_k),
                }
                for instance in sorted(candidates, key=lambda c: (c.preference, c.name))
            ],
        }
        for key, candidates in sorted(by_key.items())
    ]


def manifest(operators, arch, library_version, tuned=True):
    kernels = [_kernel(op, instance) for op in operators for instance in op.instances(arch)]
    document = {
        "generated_by": banner(),
        "arch": arch,
        "executed": arch in EXECUTED_ARCHITECTURES,
        "abi_id": hex64(abi_id(operators)),
        "library_version": library_version,
        "kernels": sorted(kernels, key=lambda kernel: kernel["name"]),
        "selection": [row for op in operators for row in _selection(op, arch)],
        "tuning": [row for op in operators for row in manifest_rows(op, arch)] if tuned else [],
    }
    return json.dumps(document, indent=1) + "\n"
