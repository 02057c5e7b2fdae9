"""An installed tree as PyTorch's build takes it: AOTRITON_INSTALLED_PREFIX, of which it copies `lib` and `include` and nothing else."""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--hip", required=True, help="include folder of HIP's headers")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        installed, copied = pathlib.Path(folder) / "installed", pathlib.Path(folder) / "torch"
        subprocess.run([args.cmake, "--install", args.build, "--prefix", installed], check=True, stdout=subprocess.DEVNULL)
        for name in ("lib", "include"):
            shutil.copytree(installed / name, copied / name, symlinks=True)
        shutil.rmtree(installed)
        lib = copied / "lib"
        for minor in (None, 13, 14):
            program = pathlib.Path(folder) / f"program{minor}"
            version = [f"-DAOTRITON_VERSION_MINOR={minor}"] if minor else []
            subprocess.run([args.cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-D__HIP_PLATFORM_AMD__", *version, f"-I{copied}/include",
                            "-isystem", args.hip, HERE / "installed.cc", "-o", program, lib / "libaotriton_v2.so", lib / "libflydsl_aot.so",
                            f"-Wl,-rpath,{lib}"], check=True)
            result = subprocess.run([program], cwd="/", env={"FLYDSL_AOT_DEVICE": "emulator"}, capture_output=True, text=True)
            print(result.stdout, result.stderr)
            if result.returncode != 0 or (minor and result.stdout.strip() != f"PASS 0.{minor}"):
                return 1
        # Without its archive the library says so: hipErrorFileNotFound, and where it looked.
        archives = list(lib.glob("*.fda"))
        for archive in archives:
            archive.unlink()
        result = subprocess.run([program], cwd="/", env={"FLYDSL_AOT_DEVICE": "emulator"}, capture_output=True, text=True)
        print(result.stdout, result.stderr)
        return 0 if archives and result.stdout.startswith("check_gpu: 301, ") and str(lib) in result.stdout else 1


if __name__ == "__main__":
    sys.exit(main())
