"""abi.h and <op>_kernarg.h: C11 and C++20, host and device."""

import re

from describe.rows import EXECUTED_ARCHITECTURES

from .layout import abi_id, c_declaration, hex64, layout_id, offsets
from .output import banner

# GCC and clang predefine these, so that device code needs no system header.
_PREDEFINED = {
    "int64_t": "__INT64_TYPE__",
    "int32_t": "__INT32_TYPE__",
    "uint32_t": "__UINT32_TYPE__",
    "uint64_t": "__UINT64_TYPE__",
}

_STATIC_ASSERT = """\
#ifdef __cplusplus
#define FLYDSL_AOT_KERNARG_ASSERT(condition, text) static_assert(condition, text)
#else
#define FLYDSL_AOT_KERNARG_ASSERT(condition, text) _Static_assert(condition, text)
#endif
"""


def abi_header(operators):
    rows = " \\\n".join(f"  X({op.name}, {hex64(layout_id(op))}ull)" for op in operators)
    fields = " \\\n".join(
        f"  X({op.name}, {field.name}, {field.first_bit}, {field.bits})" for op in operators for field in op.key_fields
    )
    return f"""\
/* {banner()} */
#ifndef FLYDSL_AOT_GENERATED_ABI_H
#define FLYDSL_AOT_GENERATED_ABI_H

/* Hash of all kernel-argument layouts and of the selection schema (docs/archive-format.md). */
#define FLYDSL_AOT_GENERATED_ABI_ID {hex64(abi_id(operators))}ull

/* X(operator, kernel-argument layout id) for every operator. */
#define FLYDSL_AOT_GENERATED_OPERATORS(X) \\
{rows}

/* X(operator, field, first bit, bits) for every field of their functional keys. */
#define FLYDSL_AOT_GENERATED_KEY_FIELDS(X) \\
{fields}

/* Those on which kernels were executed; what is compiled for others is not called unless that is allowed. */
#define FLYDSL_AOT_GENERATED_EXECUTED_ARCHITECTURES {", ".join(f'"{arch}"' for arch in EXECUTED_ARCHITECTURES)}

#endif
"""


def _field_line(argument):
    declaration = re.sub(r"\bu?int\d+_t\b", lambda m: _PREDEFINED[m.group()], c_declaration(argument))
    comment = f" /* {argument.comment} */" if argument.comment else ""
    return f"  {declaration};{comment}"


def _key_function(op):
    parameters, checks, terms = [], [], []
    for field in op.key_fields:
        parameters.append(f"__UINT64_TYPE__ {field.name}")
        terms.append(f"((({field.name}) & {hex((1 << field.bits) - 1)}ull) << {field.first_bit})")
        comment = f": {field.comment}" if field.comment else ""
        checks.append(f" * {field.name}: bits {field.first_bit}-{field.first_bit + field.bits - 1}{comment}")
    separator = ",\n    "
    return f"""\
/* Functional key: what decides whether a kernel can run. A value that does not fit its field would alias
 * another key: callers check ranges first.
{chr(10).join(checks)} */
static inline __UINT64_TYPE__ flydsl_aot_{op.name}_key(
    {separator.join(parameters)}) {{
  return {(" |" + chr(10) + "         ").join(terms)};
}}"""


def _table(op, table):
    rows = " \\\n".join(f"  X({', '.join(map(str, row))})" for row in table.rows)
    return f"""\
/* {table.comment} */
#define FLYDSL_AOT_{op.name.upper()}_{table.name.upper()}(X) \\
{rows}

"""


def kernarg_header(op):
    upper, struct = op.name.upper(), f"flydsl_aot_{op.name}_kernarg"
    fields, size = offsets(op)
    members = "\n".join(_field_line(argument) for argument, _ in fields)
    asserts = "\n".join(
        f'FLYDSL_AOT_KERNARG_ASSERT(__builtin_offsetof({struct}, {a.name}) == {offset}, "{a.name}");'
        for a, offset in fields
    )
    return f"""\
/* {banner()} */
#ifndef FLYDSL_AOT_GENERATED_{upper}_KERNARG_H
#define FLYDSL_AOT_GENERATED_{upper}_KERNARG_H

/* Kernel arguments of {op.name}: shared by its kernels and by the code that launches them. */
typedef struct {struct} {{
{members}
}} {struct};

#define FLYDSL_AOT_{upper}_KERNARG_BYTES {size}
#define FLYDSL_AOT_{upper}_KERNARG_LAYOUT_ID {hex64(layout_id(op))}ull

{_STATIC_ASSERT}
FLYDSL_AOT_KERNARG_ASSERT(sizeof({struct}) == {size}, "size");
{asserts}
#undef FLYDSL_AOT_KERNARG_ASSERT

{"".join(_table(op, table) for table in op.tables)}{_key_function(op)}

#endif
"""
