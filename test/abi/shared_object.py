"""What a shared object exports and needs, as binutils print it."""
import re
import subprocess


def _output_lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def exported(library):
    """Name -> version ("" if it has none) of every function and object; the version nodes themselves are absolute symbols."""
    symbols = {}
    for line in _output_lines("nm", "-D", "--defined-only", library):
        kind, name = line.split()[-2:]
        if kind != "A":
            name, _, version = name.partition("@")
            symbols[name] = version.lstrip("@")
    return symbols


def dynamic(library, tag):
    """What the entries of one tag (NEEDED, SONAME) name."""
    return [match.group(1) for line in _output_lines("readelf", "-dW", library) if (match := re.search(rf"\({tag}\).*\[(.*)\]", line))]


def imported(library):
    """Name -> version ("" if it has none) of what it takes from others."""
    symbols = (line.split()[-1].partition("@") for line in _output_lines("nm", "-D", "--undefined-only", library))
    return {name: version.lstrip("@") for name, _, version in symbols}
