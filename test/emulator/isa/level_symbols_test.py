"""Every symbol that an instruction family defines for others belongs to its SIMD level's namespace."""
import subprocess
import sys

LEVELS = ("base", "avx2", "avx512")


def main():
    nm, level, levels, checked, wrong = sys.argv[1], None, 0, 0, []
    for argument in sys.argv[2:]:
        for name in argument.split(";"):
            if name in LEVELS:
                level = name
                levels += 1
                continue
            listing = subprocess.run([nm, "-C", "--defined-only", name], check=True, capture_output=True, text=True)
            for line in listing.stdout.splitlines():
                parts = line.split(None, 2)
                kind, symbol = parts[-2], parts[-1]
                # Lower case is local, except for weak (v, w) and unique (u).
                if kind.islower() and kind not in "uvw":
                    continue
                checked += 1
                if f"flydsl::emu::{level}::" not in symbol:
                    wrong.append(f"{name}: {kind} {symbol}")
    print("\n".join(wrong))
    print(f"{checked} symbols of {len(sys.argv)} arguments, {len(wrong)} outside their level")
    return 1 if wrong or not levels or checked < levels * 15 else 0


sys.exit(main())
