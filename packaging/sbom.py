#!/usr/bin/env python3
"""What others wrote that is compiled into the packages: an SPDX 2.3 document and the licence texts.

    sbom.py --version V --compiler C++ [--include DIR]... --texts DIR --out FOLDER

Versions are those of the headers that the compiler finds. Texts are <DIR>/<package>/copyright, as Debian installs them.
Equal inputs give equal bytes: the date is SOURCE_DATE_EPOCH, else 1970."""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

# name, licence, home, Debian package, header, macros of the version, which files hold it
PARTS = [
    ("zstd", "BSD-3-Clause", "https://facebook.github.io/zstd/", "libzstd-dev", "zstd.h",
     ["ZSTD_VERSION_MAJOR", "ZSTD_VERSION_MINOR", "ZSTD_VERSION_RELEASE"], "libflydsl_aot, libflydsl_emu"),
    ("xxHash", "BSD-2-Clause", "https://xxhash.com/", "libxxhash-dev", "xxhash.h",
     ["XXH_VERSION_MAJOR", "XXH_VERSION_MINOR", "XXH_VERSION_RELEASE"], "libflydsl_aot"),
    ("JSON for Modern C++", "MIT", "https://json.nlohmann.me/", "nlohmann-json3-dev", "nlohmann/json.hpp",
     ["NLOHMANN_JSON_VERSION_MAJOR", "NLOHMANN_JSON_VERSION_MINOR", "NLOHMANN_JSON_VERSION_PATCH"], "flydsl-aot"),
    ("CLI11", "BSD-3-Clause", "https://github.com/CLIUtils/CLI11", "libcli11-dev", "CLI/Version.hpp",
     ["CLI11_VERSION_MAJOR", "CLI11_VERSION_MINOR", "CLI11_VERSION_PATCH"], "flydsl-aot"),
    ("LLVM", "Apache-2.0 WITH LLVM-exception", "https://llvm.org/", "llvm-22-dev", "llvm/Config/llvm-config.h",
     ["LLVM_VERSION_MAJOR", "LLVM_VERSION_MINOR", "LLVM_VERSION_PATCH"], "libflydsl_emu"),
    ("zlib", "Zlib", "https://zlib.net/", "zlib1g-dev", "zlib.h", ["ZLIB_VER_MAJOR", "ZLIB_VER_MINOR", "ZLIB_VER_REVISION"], "libflydsl_emu"),
    ("libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1", "https://gcc.gnu.org/onlinedocs/libstdc++/", "libstdc++6", "cstddef",
     ["__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"], "libflydsl_aot, libflydsl_emu, flydsl-aot"),
]


def macros(compiler, includes, header):
    """The numeric macros that are defined after a header, or None if the compiler does not find it."""
    command = [compiler, *(f"-I{path}" for path in includes), "-std=c++20", "-E", "-dM", "-x", "c++", "-"]
    done = subprocess.run(command, input=f"#include <{header}>\n", text=True, capture_output=True)
    return dict(re.findall(r"#define (\w+) (\d+)\b", done.stdout)) if done.returncode == 0 else None


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name, version, licence, home, comment):
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", "downloadLocation": home, "filesAnalyzed": False, "comment": comment}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--texts", type=pathlib.Path, required=True)
    parser.add_argument("--without", action="append", default=[], help="parts that this build does not have")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()

    own = package("flydsl_aot", arguments.version, "MIT", "NOASSERTION", "the library, its command, its emulator")
    packages, relations, texts = [own], [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                                          "relatedSpdxElement": own["SPDXID"]}], []
    for name, licence, home, debian, header, version, where in PARTS:
        if name in arguments.without:
            continue
        found = macros(arguments.compiler, arguments.include, header)
        if found is None:
            sys.exit(f"sbom.py: {arguments.compiler} finds no <{header}> of {name}; --include names its folder, --without leaves {name} out")
        missing = [macro for macro in version if macro not in found]
        if missing:
            sys.exit(f"sbom.py: <{header}> of {name} defines no {', '.join(missing)}")
        text = arguments.texts / debian / "copyright"
        if not text.is_file():
            sys.exit(f"sbom.py: no licence of {name} at {text}; --texts names a folder of <package>/copyright")
        packages.append(package(name, ".".join(found[macro] for macro in version), licence, home, f"linked or compiled into {where}"))
        relations.append({"spdxElementId": own["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": identifier(name)})
        texts.append((name, where, text.read_text(errors="replace")))

    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                "name": f"flydsl_aot-{arguments.version}", "documentNamespace": f"urn:flydsl_aot:{arguments.version}:{int(date.timestamp())}",
                "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: flydsl_aot packaging/sbom.py"]},
                "packages": packages, "relationships": relations}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "flydsl_aot.spdx.json").write_text(json.dumps(document, indent=1) + "\n")
    (arguments.out / "THIRD_PARTY.txt").write_text("".join(
        f"{'=' * 78}\n{name}: part of {where}\n{'=' * 78}\n\n{text.rstrip()}\n\n" for name, where, text in texts))


if __name__ == "__main__":
    main()
