"""kernels.cmake: one call per instance of a function that kernels/CMakeLists.txt defines."""

from .instances import object_path, source_path
from .output import banner


def rules(operators, arch):
    lines = [f"# {banner()}"]
    for op in operators:
        for instance in sorted(op.instances(arch), key=lambda i: i.name):
            options = " HIDES_ACCUMULATORS" if instance.hides_accumulators else ""
            lines.append(
                f"flydsl_aot_device_object({arch} {source_path(op, instance)} {object_path(op, instance)}{options})"
            )
    return "\n".join(lines) + "\n"
