"""Compiles hip_client.hip against Debian's HIP headers, links it with libflydsl_emu.so and runs it.

The headers come from the package libamdhip64-dev: installed, or fetched by test/support/fetch_hip_headers.sh. Exit status 77, with a reason, where they cannot be had.
"""
import argparse
import os
import pathlib
import struct
import subprocess
import sys

SKIP = 77
HERE = pathlib.Path(__file__).resolve().parent
TARGET = "hipv4-amdgcn-amd-amdhsa--"


def hip_headers(unpacked):
    """The include folder that holds hip/hip_runtime.h, or None."""
    installed = pathlib.Path("/usr/include")
    if (installed / "hip/hip_runtime.h").exists():
        return installed
    try:
        subprocess.run([HERE.parents[1] / "support/fetch_hip_headers.sh", unpacked], check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no HIP headers: {error}")
        return None
    return unpacked / "usr/include"


def bundle(entries):
    """An offload bundle ("Clang Offload Bundler", Bundled Binary File Layout); its tool is in no package the build needs."""
    align = 4096
    table = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    contents = b""
    for target, data in entries:
        contents += bytes(-len(contents) % align)
        table += struct.pack("<QQQ", align + len(contents), len(data), len(target)) + target.encode()
        contents += data
    return table.ljust(align, b"\0") + contents


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--headers", required=True, type=pathlib.Path, help="where they are unpacked to")
    parser.add_argument("--archs", default="gfx90a,gfx942,gfx950")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    headers = hip_headers(arguments.headers)
    if headers is None:
        return SKIP
    work = arguments.work
    # HIP 5.2's headers ask for a macro that clang 22 no longer defines.
    compiler = [arguments.cxx, "-x", "hip", "-std=c++17", "-O2", "-nogpulib", "-nogpuinc", "-D__HIP_PLATFORM_AMD__",
                "-D__AMDGCN_WAVEFRONT_SIZE=64", "-isystem", str(headers), "-include", str(HERE / "device_library.h")]
    source = str(HERE / "hip_client.hip")
    archs = arguments.archs.split(",")
    entries = [("host-x86_64-unknown-linux-gnu-", b"")]
    for arch in archs:
        output = work / f"client.{arch}.co"
        subprocess.run(compiler + ["--cuda-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}", source, "-o",
                                   str(output)], check=True)
        entries.append((TARGET + arch, output.read_bytes()))
    (work / "client.hipfb").write_bytes(bundle(entries))
    subprocess.run(compiler + ["--cuda-host-only", "-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(work / "client.hipfb"),
                               "-c", source, "-o", str(work / "client.o")], check=True)
    program = work / "hip_client"
    folder = arguments.library.resolve().parent
    subprocess.run([arguments.cxx, str(work / "client.o"), "-o", str(program), str(arguments.library), f"-Wl,-rpath,{folder}"],
                   check=True)
    for arch in archs:
        environment = dict(os.environ, FLYDSL_EMU_ARCH=arch, FLYDSL_EMU_LOG="1")
        result = subprocess.run([str(program)], env=environment, capture_output=True, text=True, timeout=120)
        print(f"{arch}: {result.stdout.strip()}")
        if result.returncode != 0 or result.stdout.strip() != "PASS":
            print(result.stderr)
            return 1
    return 0


sys.exit(main())
