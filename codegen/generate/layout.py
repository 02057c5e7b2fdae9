"""Kernel-argument offsets, functional keys, and the ids that tie archives to the library.

The definitions of the ids are in docs/archive-format.md ("ABI id").
"""

import hashlib

from describe.model import ARGUMENT_TYPES


def offsets(operator):
    """[(argument, offset in bytes)] by C's rules, and the struct's size."""
    result, offset, alignment = [], 0, 1
    for argument in operator.arguments:
        size = ARGUMENT_TYPES[argument.c_type]
        offset = -(-offset // size) * size
        result.append((argument, offset))
        offset += size
        alignment = max(alignment, size)
    return result, -(-offset // alignment) * alignment


def c_declaration(argument):
    space = "" if argument.c_type.endswith("*") else " "
    return f"{argument.c_type}{space}{argument.name}"


def _digest(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def layout_text(operator):
    lines = [f"{a.c_type} {a.name} @{offset}\n" for a, offset in offsets(operator)[0]]
    lines += [f"key {f.name} {f.first_bit} {f.bits}\n" for f in operator.key_fields]
    return "".join(lines)


def layout_id(operator):
    return _digest(layout_text(operator))


def abi_id(operators):
    text = "".join(
        f"{op.name}:{layout_id(op):016x}\n" for op in sorted(operators, key=lambda op: op.name)
    )
    return _digest(text + "selection:2\n")


def pack_key(operator, values):
    """A functional key from {field: value}."""
    fields = {field.name: field for field in operator.key_fields}
    key = 0
    for name, value in values.items():
        field = fields[name]
        if not 0 <= value < 1 << field.bits:
            raise ValueError(f"{operator.name}: {name} = {value} does not fit {field.bits} bits")
        key |= value << field.first_bit
    return key


def functional_key(operator, instance):
    return pack_key(operator, dict(instance.key))


def hex64(value):
    return f"0x{value:016x}"
