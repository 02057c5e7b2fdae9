"""Holds the shared library to its headers: it exports exactly the functions they declare, the C test references each of them,
and it needs no library but the C and C++ run-times'."""
import argparse
import pathlib
import re
import sys

import shared_object

# What a process has anyway. HIP and the emulator are opened at run time; zstd is inside.
ALLOWED_NEEDED = re.compile(r"^(lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-x86-64\.so\.2)$")


def declared_functions(headers):
    names = set()
    for header in sorted(headers.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
        names |= set(re.findall(r"FLYDSL_AOT_API\s[^;]*?\b(flydsl_aot_\w+)\s*\(", text))
    return names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--headers", type=pathlib.Path, required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--c-test", type=pathlib.Path, required=True)
    args = parser.parse_args()
    problems = []

    declared = declared_functions(args.headers)
    exported = set(shared_object.exported(args.library))
    if not declared:
        problems.append("no declaration found in the headers")
    problems += [f"declared but not exported: {name}" for name in sorted(declared - exported)]
    problems += [f"exported but not declared: {name}" for name in sorted(exported - declared)]

    test = args.c_test.read_text()
    problems += [f"not referenced by {args.c_test.name}: {name}" for name in sorted(declared)
                 if not re.search(rf"\b{name}\s*\(", test)]

    needed = shared_object.dynamic(args.library, "NEEDED")
    problems += [f"needs {name}" for name in needed if not ALLOWED_NEEDED.match(name)]

    for problem in problems:
        print(f"{args.library}: {problem}", file=sys.stderr)
    print(f"{len(exported)} exported functions, {len(declared)} declared; needs {', '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
