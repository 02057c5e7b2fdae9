"""One translation unit per kernel instance."""

from .output import banner


def source_path(op, instance):
    return f"{op.name}/{instance.name}.hip"


def object_path(op, instance):
    return f"{op.name}/{instance.name}.co"


def source(op, instance):
    block = instance.block[0] * instance.block[1] * instance.block[2]
    return f"""\
// {banner()}
#include "{instance.header}"

using namespace flydsl::kernels;

extern "C" FLYDSL_KERNEL({block}, {instance.waves_per_simd}) void {instance.name}(
    flydsl_aot_{op.name}_kernarg args) {{
  {instance.entry}(args);
}}
"""
