"""How large what is installed is: the library without its symbols, the archive against the code objects under xz -9, each on its own."""
import ctypes
import lzma
import os
import pathlib
import subprocess
import tempfile
import unittest

LIBRARY = pathlib.Path(os.environ["LIBRARY"])
ARCHIVE = pathlib.Path(os.environ["ARCHIVE"])
STRIP = os.environ["STRIP"]
MOST_LIBRARY_BYTES = 1_500_000
MOST_ARCHIVE_BYTES = 16_000_000


class Entry(ctypes.Structure):
    """flydsl_aot_archive_entry"""
    _fields_ = ([("struct_size", ctypes.c_uint32), ("wave_size", ctypes.c_uint32)]
                + [(name, ctypes.c_char_p) for name in ("name", "op", "backend", "target_id", "symbol", "grid_rule")]
                + [("kernarg_layout_id", ctypes.c_uint64), ("kernarg_bytes", ctypes.c_uint32), ("block", ctypes.c_uint32 * 3),
                   ("tile", ctypes.c_uint32 * 3)]
                + [(name, ctypes.c_uint32) for name in ("lds_static_bytes", "lds_dynamic_bytes", "scratch_bytes", "vgpr_count",
                                                        "sgpr_count")]
                + [("compressed_bytes", ctypes.c_uint64), ("image_bytes", ctypes.c_uint64)])


def code_objects():
    library = ctypes.CDLL(str(LIBRARY))
    archive = ctypes.c_void_p()
    assert library.flydsl_aot_archive_open(os.fsencode(ARCHIVE), ctypes.byref(archive)) == 0
    objects = set()
    for index in range(library.flydsl_aot_archive_count(archive)):
        entry = Entry(ctypes.sizeof(Entry))
        assert library.flydsl_aot_archive_get(archive, index, ctypes.byref(entry)) == 0
        image = ctypes.create_string_buffer(entry.image_bytes)
        assert library.flydsl_aot_archive_read(archive, index, image, ctypes.c_size_t(entry.image_bytes)) == 0
        objects.add(image.raw)
    library.flydsl_aot_archive_close(archive)
    return objects


def xz(image):
    """xz -9; the dictionary, which is larger than any of them, only as large as it has to be."""
    dictionary = max(4096, 1 << (len(image) - 1).bit_length())
    return lzma.compress(image, filters=[{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": dictionary}])


class SizeTest(unittest.TestCase):
    def test_library(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = pathlib.Path(folder) / "stripped.so"
            subprocess.run([STRIP, "--strip-unneeded", "-o", stripped, LIBRARY], check=True)
            size = stripped.stat().st_size
        print(f"{LIBRARY.name}: {size} bytes stripped, at most {MOST_LIBRARY_BYTES}")
        self.assertLess(size, MOST_LIBRARY_BYTES)

    def test_archive(self):
        size = ARCHIVE.stat().st_size
        objects = code_objects()
        alone = sum(len(xz(image)) for image in objects)
        print(f"{ARCHIVE.name}: {size} bytes, at most {MOST_ARCHIVE_BYTES}; {len(objects)} code objects of "
              f"{sum(map(len, objects))} bytes, {alone} bytes under xz -9 each")
        self.assertLess(size, MOST_ARCHIVE_BYTES)
        self.assertLess(size, alone)


if __name__ == "__main__":
    unittest.main()
