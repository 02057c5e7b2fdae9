"""Lives of processes that hold the library: how they end, what they leave, where they find it. Each is a process of its own (life.cc).
B53, B56, B57: public reports."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools/archive_format"))
from maker import sealed  # noqa: E402

LIFE, LIFE_SANITIZED = os.environ["LIFE"], os.environ["LIFE_SANITIZED"]
LIBRARY = pathlib.Path(os.environ["LIBRARY"]).resolve()
BETWEEN = os.environ["HIP_BETWEEN"]
HOSTILE_ZSTD = os.environ["HOSTILE_ZSTD"]
TARGETS = {"nothing": os.environ["FAKE_HIP7"], "emulator": os.environ["EMULATOR"]}
RIGHT = 7
TURNS = 50  # as the reports ask for

PYTHON = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("device", ctypes.c_int32), ("device_library", ctypes.c_char_p),
                ("arch", ctypes.c_char_p), ("archive_path", ctypes.c_char_p)]
options = Options(ctypes.sizeof(Options), 1, sys.argv[2].encode(), None, None)
handle, memory = ctypes.c_void_p(), ctypes.c_void_p()
assert library.flydsl_aot_open(ctypes.byref(options), ctypes.byref(handle)) == 0
assert library.flydsl_aot_device_malloc(handle, ctypes.c_size_t(64), ctypes.byref(memory)) == 0
sys.exit(7)
"""


class LifeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def environment(self, target, **more):
        return {"HIP_BETWEEN_TARGET": TARGETS[target], "LANG": "C", "PATH": os.environ["PATH"], **more}

    def live(self, how, *arguments, target="nothing", cwd=None, program=LIFE, **environment):
        result = subprocess.run([program, how, *map(str, arguments or (LIBRARY,))], capture_output=True, text=True, timeout=120, cwd=cwd,
                                env=self.environment(target, **environment))
        self.assertEqual((result.returncode, result.stderr, result.stdout), (RIGHT, "", ""), (how, target))

    def test_B57_the_end_of_a_process(self):
        for target in TARGETS:
            for how in ("open", "closed", "call_at_exit", "exit_in_thread"):
                with self.subTest(how=how, target=target):
                    for _ in range(TURNS):
                        self.live(how, target=target)

    def test_B57_python_ends_with_a_live_handle(self):
        for target in TARGETS:
            for _ in range(TURNS):
                result = subprocess.run([sys.executable, "-S", "-c", PYTHON, LIBRARY, BETWEEN], capture_output=True, text=True, timeout=120,
                                        env=self.environment(target))
                self.assertEqual((result.returncode, result.stderr, result.stdout), (RIGHT, "", ""), target)

    def test_loads_and_unloads_leave_nothing(self):
        self.live("reload")

    def test_loads_and_unloads_under_the_address_sanitizer(self):
        for how in ("reload", "closed"):
            with self.subTest(how):
                self.live(how, program=LIFE_SANITIZED, ASAN_OPTIONS="detect_leaks=1")

    def test_signals_are_untouched(self):
        self.live("signals")

    def test_messages_that_nobody_takes_end_no_process(self):
        for environment in ({"FLYDSL_AOT_LOG": "debug"}, {"FLYDSL_AOT_VERBOSE": "stderr"}):
            with self.subTest(environment):
                self.live("unwritable_messages", **environment)

    def test_B56_two_copies_in_one_process(self):
        for name in ("one", "other"):
            self.install(self.folder / name)
        self.live("two_copies", self.folder / "one/lib" / LIBRARY.name, self.folder / "other/lib" / LIBRARY.name)

    def test_B56_two_versions_in_one_process(self):
        one = self.install(self.folder / "one")
        other = self.install(self.folder / "other")
        archives = [path.parent.parent / "share/flydsl_aot/flydsl_aot.gfx950.fda" for path in (one, other)]
        self.make_another_version(other, archives[1])
        self.live("two_copies", one, other)
        for archive, version in zip(archives, (other, one)):
            shutil.copy(archive, version.parent)  # found before the right one
            result = subprocess.run([LIFE, "open", version], capture_output=True, text=True, env=self.environment("nothing"))
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, "built with library version .* so its kernels take other arguments")
            (version.parent / archive.name).unlink()

    def make_another_version(self, library, archive):
        """Library and archive of another ABI, which is a number in both."""
        content = bytearray(archive.read_bytes())
        old = bytes(content[24:32])
        new = struct.pack("<Q", struct.unpack("<Q", old)[0] ^ 0x5A5A5A5A5A5A5A5A)
        content[24:32] = new
        archive.write_bytes(sealed(content))
        code = library.read_bytes()
        self.assertGreater(code.count(old), 0)
        library.write_bytes(code.replace(old, new))

    def test_B56_a_runtime_in_the_process_is_the_one_that_is_used(self):
        for folder in ("wheel", "system"):
            (self.folder / folder).mkdir()
            shutil.copy(TARGETS["nothing"], self.folder / folder / "libamdhip64.so.7")
        self.live("runtime_of_a_wheel", LIBRARY, self.folder / "wheel/libamdhip64.so.7", LD_LIBRARY_PATH=str(self.folder / "system"))

    def test_another_zstd_in_the_process_is_not_used(self):
        self.live("open", LD_PRELOAD=HOSTILE_ZSTD)

    def install(self, prefix):
        (prefix / "lib").mkdir(parents=True)
        (prefix / "share/flydsl_aot").mkdir(parents=True)
        shutil.copy(LIBRARY, prefix / "lib")
        shutil.copy(LIBRARY.parent / "flydsl_aot.gfx950.fda", prefix / "share/flydsl_aot")
        return prefix / "lib" / LIBRARY.name

    # Neither HOME nor TMPDIR is set in any of them, and a file that is made ends the process.
    def test_B53_places(self):
        library = self.install(self.folder / "x y/データ ü")
        self.live("from_root", library)
        link = self.folder / "link.so"
        link.symlink_to(library)
        self.live("open", link)
        self.live("moved", os.path.relpath(library, self.folder), cwd=self.folder)
        self.live("moved", os.path.relpath(link, self.folder / "x y"), cwd=self.folder / "x y")
        for folder in (library.parent, library.parent.parent / "share/flydsl_aot"):
            folder.chmod(0o555)
        self.live("open", library)

    def test_B53_a_missing_archive_is_told_with_the_places(self):
        library = self.install(self.folder / "x y/データ ü")
        archive = library.parent.parent / "share/flydsl_aot/flydsl_aot.gfx950.fda"
        archive.unlink()
        result = subprocess.run([LIFE, "open", library], capture_output=True, text=True, env=self.environment("nothing"))
        self.assertEqual(result.returncode, 1)
        for place in (library.parent / archive.name, library.parent / "../share/flydsl_aot" / archive.name):
            self.assertIn(str(place), result.stderr)


if __name__ == "__main__":
    unittest.main()
