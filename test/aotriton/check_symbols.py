"""Holds libaotriton_v2.so to symbols.txt, the names that programs compiled with AOTriton's headers look for (`c++filt < symbols.txt`
reads them), and to the libraries it may need."""
import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "abi"))
import shared_object  # noqa: E402

ALLOWED_NEEDED = re.compile(r"^(libflydsl_aot\.so\.\d+|lib(c|m|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-x86-64\.so\.2)$")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symbols", type=pathlib.Path, required=True)
    parser.add_argument("--library", required=True)
    args = parser.parse_args()

    listed = set(args.symbols.read_text().split())
    exported = set(shared_object.exported(args.library))
    needed = shared_object.dynamic(args.library, "NEEDED")
    problems = [f"listed but not exported: {name}" for name in sorted(listed - exported)]
    problems += [f"exported but not listed: {name}" for name in sorted(exported - listed)]
    problems += [f"needs {name}" for name in needed if not ALLOWED_NEEDED.match(name)]
    if shared_object.dynamic(args.library, "SONAME") != ["libaotriton_v2.so"]:
        problems.append("its SONAME is not libaotriton_v2.so")
    for problem in problems:
        print(f"{args.library}: {problem}", file=sys.stderr)
    print(f"{len(exported)} exported, {len(listed)} listed; needs {', '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
