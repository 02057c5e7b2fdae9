#!/usr/bin/env python3
"""The tarballs of packaging/tarball.sh, unpacked and used as strangers would: other folders, other users, programs of their own.

    tarball_test.py --source CHECKOUT --archives FOLDER [--define NAME=VALUE]..."""
import argparse
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import packages

ARGUMENTS = argparse.Namespace()
ODD_NAME = "Ünï cödé und ein Ort mit Leerzeichen"  # pkg-config loses quotes, linkers commas
NUMPY = """import numpy as np, flydsl_aot
with flydsl_aot.open(device="emulator") as library:
    x = np.random.default_rng(1).standard_normal((3, 200)).astype(np.float32)
    out = library.rms_norm(library.upload(x), eps=0).out.numpy()
    np.testing.assert_allclose(out, x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True)), rtol=1e-5)
    print(library.info().archive_path)
"""


def environment(**more):
    return packages.environment(**{"FLYDSL_AOT_DEVICE": "emulator", **more})


def run(*command, **options):
    options.setdefault("env", environment())
    return packages.run(*command, **options)


class Tarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.dist = cls.folder / "dist"
        cls.pack(cls.dist)
        cls.prefix = cls.unpack(cls.folder / ODD_NAME, "gfx950", "emulator")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def pack(cls, out):
        defines = [f"-D{define}" for define in ARGUMENTS.define]
        run(ARGUMENTS.source / "packaging/tarball.sh", "--archives", ARGUMENTS.archives, "--out", out, *defines, env=dict(os.environ))

    @classmethod
    def unpack(cls, prefix, *names):
        prefix.mkdir(parents=True)
        for name in names:
            (tarball,) = cls.dist.glob(f"*-linux-x86_64-{name}.tar.gz")
            run("tar", "-xzf", tarball, "--strip-components=1", "-C", prefix)
        return prefix

    def unpack_beside(self, name):
        """The command of a tree with two more archives, one of them no archive."""
        tree = self.unpack(self.folder / name, "gfx950", "emulator")
        shutil.copy(tree / "lib/flydsl_aot.gfx950.fda", tree / "lib/flydsl_aot.other.fda")
        (tree / "lib/flydsl_aot.broken.fda").write_text("none")
        return tree / "bin/flydsl-aot"

    def right(self, program, *arguments, prefix=None, **more):
        text = run(program, *arguments, env=environment(**more))
        self.assertIn("right", text.splitlines())
        self.assertIn(f"archive {(prefix or self.prefix) / 'lib/flydsl_aot.gfx950.fda'}", text)

    def linked_client(self, prefix, out):
        out.mkdir(parents=True, exist_ok=True)
        # As in a shell's eval: pkg-config puts a backslash before each byte that is not ASCII.
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "flydsl_aot"], capture_output=True, check=True,
                               env=environment(PKG_CONFIG_PATH=prefix / "lib/pkgconfig")).stdout.decode("latin-1")
        words = [word.encode("latin-1").decode() for word in shlex.split(flags)]
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", packages.CLIENT, "-o", out / "client", *words, "-lm")
        return out / "client"

    def test_sums_names_and_parts(self):
        tarballs = sorted(self.dist.glob("*.tar.gz"))
        self.assertEqual([path.name.split("x86_64-")[1] for path in tarballs],
                         ["emulator.tar.gz", "gfx950-aotriton.tar.gz", "gfx950.tar.gz"])
        for path in tarballs:
            expected = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
            self.assertEqual(pathlib.Path(f"{path}.sha256").read_text(), expected)
            for line in run("tar", "-tvzf", path).splitlines():
                self.assertIn(" 0/0 ", line)
                self.assertTrue(line.split()[-1].startswith(path.name[:-len(".tar.gz")]) or "->" in line, line)
        bill = json.loads((self.prefix / "share/doc/flydsl_aot/flydsl_aot.spdx.json").read_text())
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        versions = {part["name"]: part["versionInfo"] for part in bill["packages"]}
        for part in ("flydsl_aot", "zstd", "xxHash", "LLVM", "zlib", "CLI11", "JSON for Modern C++", "libstdc++"):
            self.assertRegex(versions[part], r"^\d+\.\d+\.\d+$")
            if part != "flydsl_aot":
                self.assertIn(f"{part}: part of", (self.prefix / "share/doc/flydsl_aot/THIRD_PARTY.txt").read_text())

    def test_equal_sources_give_equal_bytes(self):
        again = self.folder / "again"
        self.pack(again)
        for path in self.dist.iterdir():
            self.assertEqual(path.read_bytes(), (again / path.name).read_bytes(), path.name)

    def test_nothing_but_an_older_libc_is_needed_and_no_path_of_the_build_is_left(self):
        for path in [*self.prefix.glob("lib/*.so"), self.prefix / "bin/flydsl-aot"]:
            libraries, too_new = packages.needs(path)
            self.assertLessEqual(libraries, packages.LIBRARIES, path)
            self.assertEqual(too_new, set(), path)
        for path in (path for path in self.prefix.rglob("*") if path.is_file()):
            self.assertNotIn(os.fsencode(ARGUMENTS.source), path.read_bytes(), path)

    def test_pkg_config(self):
        client = self.linked_client(self.prefix, self.folder / "by pkg-config")
        self.right(client, LD_LIBRARY_PATH=self.prefix / "lib")
        # The tree was moved: nothing in it says where it was.
        moved = self.unpack(self.folder / "elsewhere", "gfx950", "emulator")
        self.right(client, prefix=moved, LD_LIBRARY_PATH=moved / "lib")

    def test_find_package(self):
        self.right(packages.client_by_cmake(self.folder / "by CMake", self.prefix))

    def test_dlopen(self):
        client = packages.client_by_dlopen(self.folder / "by_dlopen", self.prefix)
        self.right(client, self.prefix / "lib/libflydsl_aot.so.0")

    def test_command(self):
        command = self.prefix / "bin/flydsl-aot"
        (archive,) = (line.split(None, 1)[1] for line in run(command, "info").splitlines() if line.startswith("archive "))
        self.assertEqual(os.path.realpath(archive), str(self.prefix / "lib/flydsl_aot.gfx950.fda"))
        text = run(self.unpack_beside("several"), "info")  # archives of several architectures
        self.assertRegex(text, r"beside it  .*/lib/flydsl_aot.other.fda \(gfx950, \d+ kernels\)\n")
        self.assertRegex(text, r"beside it  .*broken.fda.*\n")
        run(command, "archive", "verify", self.prefix / "lib/flydsl_aot.gfx950.fda")
        run(command, "verify", "topk_softmax", "--suite", "smoke", cwd="/")

    def test_numpy(self):
        text = run(sys.executable, "-c", NUMPY, env=environment(PYTHONPATH=self.prefix / "python"))
        self.assertEqual(text.strip(), str(self.prefix / "lib/flydsl_aot.gfx950.fda"))

    def test_read_only_tree_of_another_user(self):
        tree = self.unpack(self.folder / "read-only", "gfx950", "emulator")
        client = self.linked_client(tree, self.folder / "client of it")
        for path in [self.folder, *self.folder.glob("client of it*/**/*"), *self.folder.glob("client of it*")]:
            path.chmod(0o755)
        run("chmod", "-R", "a-w,a+rX", tree)
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        text = run(*drop, client, env=environment(LD_LIBRARY_PATH=tree / "lib", HOME="/nonexistent"))
        self.assertIn("right", text)
        run(*drop, tree / "bin/flydsl-aot", "info", env=environment(HOME="/nonexistent"))
        run("chmod", "-R", "u+w", tree)

    def test_beside_an_older_version(self):
        # Its file has the same SONAME; a program that was linked with it goes on with it, one that names the new one gets that.
        old = self.folder / "older/lib"
        old.mkdir(parents=True)
        (old / "old.c").write_text("unsigned flydsl_aot_version(void) { return 9; }\n")
        run("cc", "-shared", "-fPIC", "-Wl,-soname,libflydsl_aot.so.0", old / "old.c", "-o", old / "libflydsl_aot.so.0")
        shutil.copy(self.prefix / "lib/flydsl_aot.gfx950.fda", old)
        with open(old / "flydsl_aot.gfx950.fda", "r+b") as archive:  # what an older build's archive says: another version
            archive.seek(8)
            archive.write(b"\x01")
        client = packages.client_by_dlopen(self.folder / "newer_by_dlopen", self.prefix)
        self.right(client, self.prefix / "lib/libflydsl_aot.so.0", LD_LIBRARY_PATH=old)
        linked = self.linked_client(self.prefix, self.folder / "linked")
        refused = subprocess.run([linked], env=environment(LD_LIBRARY_PATH=old), capture_output=True, text=True)
        self.assertNotEqual(refused.returncode, 0, "the older library has no such functions")

    def test_root_without_compiler_or_llvm(self):
        root = self.folder / "root"
        inside = self.unpack(root / "opt" / ODD_NAME, "gfx950", "emulator")
        client = self.linked_client(inside, root / "bin")
        for line in run("ldd", client, env=environment(LD_LIBRARY_PATH=inside / "lib")).splitlines():
            path = next((word for word in line.split() if word.startswith("/")), None)
            if path and not path.startswith(str(root)):
                (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(os.path.realpath(path), root / path[1:])
        enter = ["chroot", root] if os.geteuid() == 0 else ["unshare", "-r", "chroot", root]
        here = f"/opt/{ODD_NAME}"
        alone = {"FLYDSL_AOT_DEVICE": "emulator", "LD_LIBRARY_PATH": f"{here}/lib", "PATH": os.environ["PATH"]}
        text = run(*enter, "/bin/client", env=alone)
        self.assertIn("right", text)
        self.assertIn(f"archive {here}/lib/flydsl_aot.gfx950.fda", text)
        self.assertIn("EMULATED", run(*enter, f"{here}/bin/flydsl-aot", "info", env=alone))

    def test_pytorchs_prefix_is_lib_and_include(self):
        prefix = self.unpack(self.folder / "aotriton", "gfx950-aotriton")
        copied = self.folder / "torch"
        for name in ("lib", "include"):  # all that PyTorch's build takes
            shutil.copytree(prefix / name, copied / name, symlinks=True)
        self.assertTrue((copied / "include/aotriton/flash.h").exists())
        path = copied / "lib/libaotriton_v2.so"
        libraries, too_new = packages.needs(path)
        self.assertLessEqual(libraries, packages.LIBRARIES | {"libstdc++.so.6", "libgcc_s.so.1"})
        self.assertEqual(too_new, set())
        text = run("ldd", path)
        self.assertIn(str(copied / "lib/libflydsl_aot.so.0"), text)
        self.assertNotIn("not found", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--archives", type=pathlib.Path, required=True)
    parser.add_argument("--define", action="append", default=[])
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
