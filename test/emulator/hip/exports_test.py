"""libflydsl_emu.so exports HIP names and its own, needs only the C and C++ run-times', and stays small."""
import pathlib
import re
import subprocess
import sys

MAX_BYTES = 40 << 20
# The sanitizers are for builds that ask for them.
ALLOWED_NEEDED = re.compile(r"(lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|asan|ubsan|tsan)\.so\.\d+|ld-linux-x86-64\.so\.2)")
ALLOWED_NAME = re.compile(r"((__)?hip[A-Z]|hiprtc[A-Z]|flydsl_emu_)\w+")


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    library = pathlib.Path(sys.argv[1])
    problems = []
    names = [line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--defined-only", str(library))]
    if "hipModuleLaunchKernel" not in names:
        problems.append("hipModuleLaunchKernel is not exported")
    problems += [f"exports {name}" for name in names if not ALLOWED_NAME.fullmatch(name)]
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", "\n".join(lines("readelf", "-d", str(library))))
    problems += [f"needs {name}" for name in needed if not ALLOWED_NEEDED.fullmatch(name)]
    if library.stat().st_size > MAX_BYTES:
        problems.append(f"{library.stat().st_size} bytes, at most {MAX_BYTES} are allowed")
    print("\n".join(problems) or f"{len(names)} exports, {library.stat().st_size} bytes")
    sys.exit(bool(problems))


main()
