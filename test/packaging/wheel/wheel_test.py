#!/usr/bin/env python3
"""The wheels of packaging/wheel.sh in fresh virtual environments, with NumPy from the package index.

    wheel_test.py --source CHECKOUT --archives FOLDER [--define NAME=VALUE]..."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import packages

ARGUMENTS = argparse.Namespace()
NUMPY = """import numpy as np, flydsl_aot
with flydsl_aot.open(device="emulator") as library:
    a, b = (np.random.default_rng(seed).standard_normal(shape).astype(np.float16) for seed, shape in ((1, (40, 64)), (2, (64, 24))))
    d = library.gemm(library.upload(a), library.upload(b)).d.numpy()
    np.testing.assert_allclose(d, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2)
    print(library.info().archive_path)
"""
QUERY = """import flydsl_aot
with flydsl_aot.open(device="none", arch="gfx950") as library:
    print(library.info().arch)
"""


def attempt(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=packages.environment(**more), cwd="/")


def run(*command, **more):
    return packages.run(*command, env=packages.environment(**more), cwd="/")


def run_in_namespace(mounts, *command, **more):
    """With mounts of its own."""
    user = [] if os.geteuid() == 0 else ["-r"]
    return run("unshare", *user, "-m", "sh", "-ec", f'{mounts}\nexec "$@"', "sh", *command, **more)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.dist = cls.folder / "dist"
        defines = [f"-D{define}" for define in ARGUMENTS.define]
        run(ARGUMENTS.source / "packaging/wheel.sh", "--archives", ARGUMENTS.archives, "--out", cls.dist, *defines)
        cls.everything = cls.venv("a venv für alles", "flydsl_aot", "flydsl_aot_gfx950", "flydsl_aot_emulator")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def wheel(cls, name):
        (found,) = cls.dist.glob(f"{name}-*.whl")
        return found

    @classmethod
    def venv(cls, name, *wheels):
        place = cls.folder / name
        run(sys.executable, "-m", "venv", place)
        cls.install(place, *map(cls.wheel, wheels))
        return place

    @classmethod
    def install(cls, place, *what):
        run(place / "bin/pip", "install", "-q", "--find-links", cls.dist, *what, **cls.index())

    @staticmethod
    def index():
        return {name: value for name, value in os.environ.items() if name.startswith("PIP_")}

    def test_tags_and_sizes(self):
        for name in ("flydsl_aot", "flydsl_aot_emulator"):
            self.assertRegex(self.wheel(name).name, r"-py3-none-manylinux_2_\d+_x86_64\.whl$")
            self.assertLessEqual(int(self.wheel(name).name.split("_")[-3]), packages.NEWEST_GLIBC[1])
        self.assertTrue(self.wheel("flydsl_aot_gfx950").name.endswith("-py3-none-any.whl"))
        self.assertLess(self.wheel("flydsl_aot_emulator").stat().st_size, 40e6)
        for path in self.dist.glob("*.whl"):
            with zipfile.ZipFile(path) as packed:
                for name in packed.namelist():
                    self.assertNotIn(os.fsencode(ARGUMENTS.source), packed.read(name), f"{path.name}: {name}")
        audit = ARGUMENTS.source / "build-wheel-venv/bin/auditwheel"
        for name in ("flydsl_aot", "flydsl_aot_emulator"):
            text = " ".join(run(audit, "show", self.wheel(name), PATH=f"{audit.parent}:{os.environ['PATH']}").split())
            self.assertIn("is consistent with the following platform tag: \"manylinux_2_", text)
            self.assertNotIn("requires these shared libraries", text)  # beyond libc and libm

    def test_the_library_alone(self):
        place = self.venv("alone", "flydsl_aot")
        done = attempt(place / "bin/python", "-c", QUERY)
        self.assertIn("ARCHIVE_NOT_FOUND", done.stderr)
        self.assertIn("flydsl_aot/lib", done.stderr)
        self.assertIn("flydsl-aot 0.", run(place / "bin/flydsl-aot", "--version"))

    def test_with_kernels_it_answers_without_a_device(self):
        place = self.venv("kernels", "flydsl_aot", "flydsl_aot_gfx950")
        self.assertEqual(run(place / "bin/python", "-c", QUERY).strip(), "gfx950")
        text = run(place / "bin/flydsl-aot", "info", "--device", "none", "--arch", "gfx950")
        for word in ("0.1.0", "flydsl_aot.gfx950.fda", "THIRD_PARTY.txt"):
            self.assertIn(word, text)
        done = attempt(place / "bin/python", "-c", NUMPY)
        self.assertIn("libflydsl_emu.so", done.stderr)

    def test_with_the_emulator(self):
        archive = run(self.everything / "bin/python", "-c", NUMPY).strip()
        self.assertTrue(archive.startswith(str(self.everything)), archive)
        text = run(self.everything / "bin/flydsl-aot", "info", FLYDSL_AOT_DEVICE="emulator")
        for word in ("EMULATED", "flydsl_aot 0.1.0", "flydsl_aot.gfx950.fda", "THIRD_PARTY.txt"):
            self.assertIn(word, text)

    def test_clients(self):
        prefix = run(self.everything / "bin/python", "-c", "import flydsl_aot; print(flydsl_aot.prefix())").strip()
        by_dlopen = packages.client_by_dlopen(self.folder / "by_dlopen", prefix)
        for command in ([packages.client_by_cmake(self.folder / "client", prefix)], [by_dlopen, f"{prefix}/lib/libflydsl_aot.so.0"]):
            text = run(*command, FLYDSL_AOT_DEVICE="emulator")
            self.assertIn("right", text)
            self.assertIn(f"archive {prefix}/lib/flydsl_aot.gfx950.fda", text)

    def test_read_only_tree(self):
        mounts = f'mount --bind "{self.everything}" "{self.everything}"; mount -o remount,bind,ro "{self.everything}"'
        run_in_namespace(mounts, self.everything / "bin/python", "-c", NUMPY)
        run_in_namespace(mounts, self.everything / "bin/flydsl-aot", "info", FLYDSL_AOT_DEVICE="emulator")

    def test_without_llvm_or_a_compiler(self):
        mounts = "for folder in /usr/lib/llvm-* /usr/lib/gcc /usr/lib/gcc-cross; do [ ! -d $folder ] || mount -t tmpfs none $folder; done"
        missing = run_in_namespace(mounts, "sh", "-c", 'echo "int x;" | cc -x c -c -o /dev/null - 2>&1 || echo no compiler')
        self.assertIn("no compiler", missing)
        run_in_namespace(mounts, self.everything / "bin/python", "-c", NUMPY)
        text = run_in_namespace(mounts, self.everything / "bin/flydsl-aot", "verify", "topk_softmax", "--device", "emulator", "--suite", "smoke")
        self.assertRegex(text, r"\b0 failed")

    def test_beside_and_over_an_older_version(self):
        place = self.folder / "older"
        run(sys.executable, "-m", "venv", place)
        old = self.folder / "flydsl_aot-0.0.9-py3-none-any.whl"
        with zipfile.ZipFile(old, "w") as packed:
            packed.writestr("flydsl_aot/__init__.py", "")
            packed.writestr("flydsl_aot/lib/libflydsl_aot.so.0", "not of this version")
            packed.writestr("flydsl_aot/gone.py", "")
            packed.writestr("flydsl_aot-0.0.9.dist-info/METADATA", "Metadata-Version: 2.1\nName: flydsl-aot\nVersion: 0.0.9\n")
            packed.writestr("flydsl_aot-0.0.9.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            packed.writestr("flydsl_aot-0.0.9.dist-info/RECORD", "".join(f"{name},,\n" for name in (*packed.namelist(), "flydsl_aot-0.0.9.dist-info/RECORD")))
        self.install(place, old)
        self.install(place, *map(self.wheel, ("flydsl_aot", "flydsl_aot_gfx950")))
        self.assertEqual(run(place / "bin/python", "-c", QUERY).strip(), "gfx950")
        self.assertNotEqual(attempt(place / "bin/python", "-c", "import flydsl_aot.gone").returncode, 0)
        # One that the loader would find first: the binding opens the library of its own package.
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "libflydsl_aot.so.0").write_text("not of this version")
        self.assertEqual(run(place / "bin/python", "-c", QUERY, LD_LIBRARY_PATH=elsewhere).strip(), "gfx950")

    def test_nothing_stays_when_it_is_removed(self):
        place = self.folder / "removed"
        run(sys.executable, "-m", "venv", place)
        names = ("flydsl_aot", "flydsl_aot_gfx950", "flydsl_aot_emulator")
        self.install(place, "--no-deps", *map(self.wheel, names))
        (package,) = place.glob("lib/python*/site-packages/flydsl_aot")
        self.assertTrue((package / "lib/libflydsl_emu.so").exists())
        run(place / "bin/pip", "uninstall", "-q", "-y", *names)
        self.assertEqual([path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"], [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--archives", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--define", action="append", default=[])
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
