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


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.dist = cls.folder / "dist"
        defines = [f"-D{define}" for define in ARGUMENTS.define]
        run(ARGUMENTS.source / "packaging/wheel.sh", "--archives", ARGUMENTS.archives, "--out", cls.dist, *defines)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def wheel(self, name):
        (found,) = self.dist.glob(f"{name}-*.whl")
        return found

    def venv(self, name, *wheels):
        place = self.folder / name
        run(sys.executable, "-m", "venv", place)
        run(place / "bin/pip", "install", "-q", "--find-links", self.dist, *map(self.wheel, wheels), **self.index())
        return place

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
        place = self.venv("a venv für alles", "flydsl_aot", "flydsl_aot_gfx950", "flydsl_aot_emulator")
        archive = run(place / "bin/python", "-c", NUMPY).strip()
        self.assertTrue(archive.startswith(str(place)), archive)
        self.assertIn("EMULATED", run(place / "bin/flydsl-aot", "info", FLYDSL_AOT_DEVICE="emulator"))

        prefix = run(place / "bin/python", "-c", "import flydsl_aot; print(flydsl_aot.prefix())").strip()
        text = run(packages.client_by_cmake(self.folder / "client", prefix), FLYDSL_AOT_DEVICE="emulator")
        self.assertIn("right", text)
        self.assertIn(f"archive {prefix}/lib/flydsl_aot.gfx950.fda", text)

        run(place / "bin/pip", "uninstall", "-q", "-y", "flydsl-aot", "flydsl-aot-gfx950", "flydsl-aot-emulator")
        left = [path for path in pathlib.Path(prefix).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        self.assertEqual(left, [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--archives", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--define", action="append", default=[])
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
