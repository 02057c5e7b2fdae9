"""The library with AMD's own hipRTC: Debian's 5.2 (clang 15) compiles norms and products for gfx90a, without a GPU, and the emulator runs them.

usage: hiprtc_test.py TOOL FOLDER    FOLDER: where the packages are unpacked to (test/support/fetch_hiprtc.sh). Exit status 77, with a reason,
where they cannot be had.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77
FETCH = pathlib.Path(__file__).resolve().parents[1] / "support/fetch_hiprtc.sh"
# Element types of rows and weights; bf16 is rounded by the kernels' own code there.
CASES = {
    "rms_norm": ("dtype=fp32 m=10 n=1024 weight=fp16", "dtype=fp16 m=33 n=1000 weight=bf16", "dtype=bf16 m=5 n=4096"),
    "layer_norm": ("dtype=fp16 m=7 n=513 weight=same bias=fp32",),
    "gemm": ("dtype=bf16 m=33 n=70 k=100 b_layout=columns bias_n=normal bias_n_dtype=bf16 activation=silu residual=normal",),
    "scaled_gemm": ("m=70 n=130 k=96 bias=bf16",),
    "mx_quantise": ("m=33 k=288 out=e2m1",),
}


def main():
    tool, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    try:
        subprocess.run([FETCH, folder], check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no hipRTC: {error}")
        return SKIP
    libraries = folder / "usr/lib/x86_64-linux-gnu"
    failures = 0
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as archives:
        # Of another architecture only, whatever else the build has.
        archive = pathlib.Path(tool).resolve().parents[1] / "lib/flydsl_aot.gfx950.fda"
        (pathlib.Path(archives) / archive.name).symlink_to(archive)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FLYDSL_")} | {
            "FLYDSL_AOT_DEVICE": "emulator", "FLYDSL_EMU_ARCH": "gfx90a", "FLYDSL_EMU_CHECKS": "all", "FLYDSL_AOT_JIT": "on",
            "FLYDSL_AOT_JIT_CACHE_DIR": cache, "FLYDSL_AOT_LOG": "info", "LD_LIBRARY_PATH": str(libraries),
            "FLYDSL_AOT_ARCHIVE_PATH": archives,
            "FLYDSL_AOT_HIPRTC_LIBRARY": str(libraries / "libamdhip64.so.5")}
        for operator, cases in CASES.items():
            for case in cases:
                # Compiled, then found again: by the second process with the same compiler.
                for how in ("info: compiled ", "was compiled before"):
                    result = subprocess.run([tool, "verify", operator, "--device", "emulator", "--case", f"x {case}"], capture_output=True,
                                            text=True, timeout=300, env=environment)
                    good = (result.returncode == 0 and "1 passed, 0 failed" in result.stdout and how in result.stderr
                            and "Clang 15" in result.stderr)
                    print(f"{operator} {case}: {how.strip()}: {'ok' if good else 'FAILED'}")
                    if not good:
                        print(result.stdout + result.stderr)
                        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
