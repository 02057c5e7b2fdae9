"""Holds libaotriton_v2.so to symbols.txt, the names that programs compiled with AOTriton's headers look for (`c++filt < symbols.txt`
reads them), and to the libraries it may need."""
import argparse
import pathlib
import re
import subprocess
import sys

ALLOWED_NEEDED = re.compile(r"^(libflydsl_aot\.so\.\d+|lib(c|m|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-x86-64\.so\.2)$")


def output_lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symbols", type=pathlib.Path, required=True)
    parser.add_argument("--library", required=True)
    args = parser.parse_args()

    listed = set(args.symbols.read_text().split())
    exported = {line.split()[-1] for line in output_lines("nm", "-D", "--defined-only", args.library)}
    dynamic = output_lines("readelf", "-d", args.library)
    needed = [match.group(1) for line in dynamic if (match := re.search(r"\(NEEDED\).*\[(.*)\]", line))]
    problems = [f"listed but not exported: {name}" for name in sorted(listed - exported)]
    problems += [f"exported but not listed: {name}" for name in sorted(exported - listed)]
    problems += [f"needs {name}" for name in needed if not ALLOWED_NEEDED.match(name)]
    if not any("SONAME" in line and "[libaotriton_v2.so]" in line for line in dynamic):
        problems.append("its SONAME is not libaotriton_v2.so")
    for problem in problems:
        print(f"{args.library}: {problem}", file=sys.stderr)
    print(f"{len(exported)} exported, {len(listed)} listed; needs {', '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
