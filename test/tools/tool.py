"""What the tests of the flydsl-aot command share: running it, and .npy files without NumPy."""
import ast
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

TOOL = os.environ["FLYDSL_AOT_TOOL"]
ARCHIVE = pathlib.Path(os.environ["FLYDSL_AOT_LIBRARY_FOLDER"]) / "flydsl_aot.gfx950.fda"
SMOLLM2 = pathlib.Path(__file__).resolve().parent.parent / "data" / "smollm2"
ITEM_BYTES = {"|b1": 1, "|u1": 1, "<u2": 2, "<f2": 2, "<f4": 4, "<f8": 8, "<i4": 4, "<i8": 8, ">f2": 2}


def write_npy(path, descr, shape, data=None, fortran_order=False):
    count = 1
    for size in shape:
        count *= size
    header = repr({"descr": descr, "fortran_order": fortran_order, "shape": tuple(shape)}).encode() + b"\n"
    data = bytes(count * ITEM_BYTES[descr]) if data is None else data
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    return path


def read_npy(path):
    """(descr, shape, data) of a version 1.0 file."""
    content = path.read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    end = 10 + struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10:end].decode())
    assert header["fortran_order"] is False
    return header["descr"], header["shape"], content[end:]


class ToolTest(unittest.TestCase):
    timeout_s = 120  # of a command

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="flydsl-aot-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def tool(self, *arguments, **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FLYDSL_AOT_", "FLYDSL_EMU_"))}
        env.update(environment)
        return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=self.timeout_s, env=env)

    def expect_error(self, exit_status, words, *arguments, **environment):
        """Exactly one line on stderr that holds `words`, nothing that looks like a result."""
        result = self.tool(*arguments, **environment)
        self.assertEqual(result.returncode, exit_status, (arguments, result))
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("flydsl-aot: error: "), result.stderr)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, result.stderr)
        return result
