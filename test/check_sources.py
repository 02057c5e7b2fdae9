"""Checks that need no build: what each folder may import (docs/architecture.md), and the length of files."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 600

# Folder -> prefixes that its quoted #includes of this project may have; the first folder that a file lies in is its rule.
# Includes that match THIRD_PARTY are held to that instead.
INCLUDES = [
    ("include/flydsl_aot/", ["flydsl_aot/"]),
    ("include/aotriton/", ["aotriton/"]),
    ("src/", ["src/", "flydsl_aot/", "flydsl_aot_generated/"]),
    ("v2src/aotriton/", ["v2src/aotriton/", "aotriton/", "flydsl_aot/"]),
    ("v2src/", ["v2src/", "src/", "flydsl_aot/", "flydsl_aot_generated/"]),
    ("kernels/common/", ["common/"]),
    ("kernels/mx_quantise/", ["mx_quantise/", "common/", "flydsl_aot_generated/"]),
    ("kernels/scaled_gemm/", ["scaled_gemm/", "common/", "flydsl_aot_generated/"]),
    ("kernels/grouped_gemm/", ["grouped_gemm/", "scaled_gemm/few_rows_loop.hip.h", "scaled_gemm/mx_loop.hip.h", "scaled_gemm/slab_products.hip.h",
                               "common/", "flydsl_aot_generated/"]),
    ("kernels/attention_decode/", ["attention_decode/", "attention_forward/exact.hip.h", "attention_forward/softmax.hip.h",
                                   "common/", "flydsl_aot_generated/"]),
    ("kernels/attention_backward/", ["attention_backward/", "attention_forward/", "common/", "flydsl_aot_generated/"]),
    ("kernels/gemm/", ["gemm/", "common/", "flydsl_aot_generated/"]),
    ("kernels/topk/", ["topk/", "common/", "flydsl_aot_generated/"]),
    ("kernels/topk_softmax/", ["topk_softmax/", "topk/tile.hip.h", "topk/screen.hip.h", "common/", "flydsl_aot_generated/"]),
    ("kernels/rms_norm/", ["rms_norm/", "common/", "flydsl_aot_generated/"]),
    ("kernels/layer_norm/", ["layer_norm/", "common/", "flydsl_aot_generated/"]),
    ("kernels/rms_norm_backward/", ["rms_norm_backward/", "common/", "flydsl_aot_generated/"]),
    ("kernels/layer_norm_backward/", ["layer_norm_backward/", "common/", "flydsl_aot_generated/"]),
    ("kernels/attention_forward/", ["attention_forward/", "common/", "flydsl_aot_generated/"]),
    ("codegen/pack/", ["codegen/pack/", "src/archive/", "src/paths/", "src/status/", "src/log/",
                      "flydsl_aot/", "flydsl_aot_generated/"]),
    ("emulator/memory/", ["emulator/memory/"]),
    ("emulator/isa/", ["emulator/isa/", "emulator/memory/", "emulator/engine/"]),
    ("emulator/engine/", ["emulator/checks/", "emulator/engine/", "emulator/isa/", "emulator/memory/"]),
    ("emulator/checks/", ["emulator/checks/", "emulator/engine/", "emulator/isa/", "emulator/memory/"]),
    ("emulator/timing/", ["emulator/checks/", "emulator/engine/", "emulator/isa/", "emulator/memory/",
                          "emulator/timing/"]),
    ("emulator/loader/", ["emulator/loader/", "emulator/engine/", "emulator/memory/"]),
    ("emulator/hip/", ["emulator/"]),
    ("emulator/", ["emulator/"]),
    ("tools/report/", ["tools/report/"]),
    ("tools/verify/", ["tools/verify/", "flydsl_aot/"]),
    ("tools/", ["tools/", "flydsl_aot/", "emulator/hip/flydsl_emu.h"]),
    ("examples/", ["flydsl_aot/"]),
    ("packaging/", ["flydsl_aot/"]),
    ("test/", [""]),
]
# Prefix of a third-party include -> folders that may have it.
THIRD_PARTY = [
    ("llvm-c/", ["emulator/isa/", "test/"]),
    ("llvm/", ["emulator/", "test/"]),
    ("zstd", ["src/archive/", "src/jit/", "codegen/pack/", "emulator/loader/", "test/"]),
    ("zdict", ["src/archive/", "codegen/pack/", "test/"]),
    ("xxhash", ["src/", "codegen/pack/", "test/"]),
    ("nlohmann/", ["codegen/pack/", "tools/", "test/"]),
    ("CLI/", ["tools/", "codegen/pack/", "test/"]),
    ("gtest/", ["test/"]),
    ("gmock/", ["test/"]),
    ("hip/", ["include/aotriton/", "v2src/aotriton/", "test/emulator/hip_client/", "test/aotriton/"]),
]
CODE = (".h", ".cc", ".c", ".cpp", ".hip")
STANDARD_PYTHON = set(sys.stdlib_module_names)


def tracked_files():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [pathlib.PurePosixPath(name) for name in listing.decode().split("\0") if name and (ROOT / name).exists()]


def rule_for(path):
    return next((allowed for prefix, allowed in INCLUDES if str(path).startswith(prefix)), None)


def check_includes(path, text):
    allowed = rule_for(path)
    if allowed is None:
        yield f"{path}: code in a folder without a rule; add one to test/check_sources.py and docs/architecture.md"
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', line)
        if not match:
            continue
        quoted, bracketed = match.groups()
        name = quoted or bracketed
        folders = next((folders for prefix, folders in THIRD_PARTY if name.startswith(prefix)), None)
        if folders is not None:
            if not any(str(path).startswith(folder) for folder in folders):
                yield f"{path}:{number}: includes {name}; only {', '.join(folders) or 'nothing'} may"
        elif quoted and not any(quoted.startswith(prefix) for prefix in allowed):
            yield f"{path}:{number}: includes {name}; this folder may include {', '.join(allowed)}"


def check_python(path, text):
    folder = str(path)
    if not folder.startswith("codegen/"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", line)
        if not match:
            continue
        module = match.group(1) or match.group(2)
        top = module.split(".")[0]
        own = module.startswith(".") or top in {"codegen", "describe", "generate"} or \
            (ROOT / path.parent / f"{top}.py").exists()
        if not own and top not in STANDARD_PYTHON:
            yield f"{path}:{number}: imports {module}; codegen uses the standard library only"
        if folder.startswith("codegen/describe/") and "generate" in module.split("."):
            yield f"{path}:{number}: a description imports the generator"


def main():
    problems = []
    for path in tracked_files():
        if path.suffix not in CODE + (".py", ".sh", ".cmake") and path.name != "CMakeLists.txt":
            continue
        text = (ROOT / path).read_text()
        lines = text.count("\n")
        if lines > MAX_LINES:
            problems.append(f"{path}: {lines} lines; at most {MAX_LINES}")
        if path.suffix in CODE:
            problems += check_includes(path, text)
        if path.suffix == ".py":
            problems += check_python(path, text)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print("sources: imports and file lengths are as documented")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
