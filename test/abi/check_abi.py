"""Holds the C ABI to what was recorded (docs/versioning.md): programs that were built with an older release keep working.

    check_abi.py --layout _layout.py --headers include/flydsl_aot --library libflydsl_aot.so --releases FOLDER [--record]

--record writes FOLDER/<major>.<minor>.json of this library, in place of what is there; a release does that, and a change that only adds may."""
import argparse
import json
import pathlib
import re
import runpy
import sys

import shared_object


def enumerators(headers):
    """Name -> value of every enumerator with a value and every numeric macro."""
    found = {}
    for header in sorted(headers.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
        found |= {name: int(value, 0) for name, value in re.findall(r"\b(FLYDSL_AOT_\w+)\s*=\s*(-?\w+)\s*[,}\n]", text)}
    return {name: value for name, value in found.items() if "VERSION" not in name}


def abi_of(layout, headers, library):
    layout = runpy.run_path(str(layout))
    (soname,) = shared_object.dynamic(library, "SONAME")
    structs = {f"flydsl_aot_{name}_params": value for name, value in layout["PARAMETERS"].items()}
    structs |= {f"flydsl_aot_{name}": value for name, value in layout["STRUCTS"].items()}
    return {"version": layout["VERSION"], "soname": soname, "symbols": shared_object.exported(library), "enumerators": enumerators(headers),
            "structs": {name: {"bytes": size, "fields": {field: list(place) for field, place in fields.items()}}
                        for name, (size, fields) in structs.items()}}


def differences(old, new):
    """What a program that was built with `old` would notice of `new`."""
    if old["soname"] != new["soname"]:
        # Another name is another library: the loader keeps old programs away from it.
        return []
    found = []
    for name, version in old["symbols"].items():
        if name not in new["symbols"]:
            found.append(f"{name} is gone")
        elif new["symbols"][name] != version:
            found.append(f"{name} has version {new['symbols'][name]!r}, was {version!r}")
    for name, value in old["enumerators"].items():
        if new["enumerators"].get(name) != value:
            found.append(f"{name} is {new['enumerators'].get(name)}, was {value}")
    for name, struct in old["structs"].items():
        if name not in new["structs"]:
            found.append(f"struct {name} is gone")
            continue
        now = new["structs"][name]
        if now["bytes"] < struct["bytes"]:
            found.append(f"struct {name} has {now['bytes']} bytes, had {struct['bytes']}")
        for field, place in struct["fields"].items():
            if now["fields"].get(field) != place:
                found.append(f"{name}.{field} is {now['fields'].get(field)}, was {place} (type, offset)")
        # A caller that was built before does not fill a new field: it has to lie past what it passes (struct_size).
        for field, place in now["fields"].items():
            if field not in struct["fields"] and place[1] < struct["bytes"]:
                found.append(f"{name}.{field} is new and lies at byte {place[1]} of the {struct['bytes']} that callers fill already")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layout", type=pathlib.Path, required=True)
    parser.add_argument("--headers", type=pathlib.Path, required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--releases", type=pathlib.Path, required=True)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    now = abi_of(arguments.layout, arguments.headers, arguments.library)
    major, minor = now["version"] // 10000, now["version"] // 100 % 100
    if now["soname"] != f"libflydsl_aot.so.{major}":
        sys.exit(f"{arguments.library}: SONAME {now['soname']} is not that of major version {major}")
    if arguments.record:
        path = arguments.releases / f"{major}.{minor}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        print(f"recorded {path}")
        return 0
    recorded = sorted(arguments.releases.glob("*.json"), key=lambda path: [int(part) for part in path.stem.split(".")])
    if not recorded:
        sys.exit(f"{arguments.releases}: nothing is recorded")
    problems = 0
    for path in recorded:
        for difference in differences(json.loads(path.read_text()), now):
            problems += 1
            print(f"against {path.name}: {difference}", file=sys.stderr)
    print(f"{len(now['symbols'])} functions, {len(now['structs'])} structs, {len(now['enumerators'])} numbers; "
          f"compared with {', '.join(path.stem for path in recorded)}: {problems} incompatible changes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
