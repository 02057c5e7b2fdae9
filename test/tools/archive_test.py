"""flydsl-aot archive list and verify, on the built archive and on damaged copies of it."""
import pathlib
import random
import struct
import sys
import unittest

from tool import ARCHIVE, ToolTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "codegen"))
from describe.registry import OPERATORS

FAILURE = 4


class ArchiveTest(ToolTest):
    def test_list_and_verify(self):
        listing = self.tool("archive", "list", ARCHIVE)
        self.assertEqual(listing.returncode, 0, listing.stderr)
        names = [line.split()[0] for line in listing.stdout.splitlines()[2:]]
        expected = [instance.name for op in OPERATORS for instance in op.instances("gfx950")]
        self.assertEqual(names, sorted(expected))
        self.assertIn(f"gfx950, {len(expected)} kernels", listing.stdout)
        verified = self.tool("archive", "verify", ARCHIVE)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertIn("good", verified.stdout)

    def damaged(self, content, words=()):
        path = self.folder / "damaged.fda"
        path.write_bytes(content)
        return self.expect_error(FAILURE, ["ARCHIVE_", *words], "archive", "verify", path)

    def test_truncation(self):
        content = ARCHIVE.read_bytes()
        for length in (0, 1, 8, 127, 128, 129, 1000, len(content) // 2, len(content) - 1):
            self.damaged(content[:length])
        self.damaged(content + b"\0")

    def test_any_flipped_bit_outside_padding_is_found(self):
        # The whole header and index are checksummed; of the code objects, flips in each entry's frame are.
        content = ARCHIVE.read_bytes()
        index_bytes, = struct.unpack_from("<Q", content, 88)
        entry_count, = struct.unpack_from("<I", content, 64)
        generator = random.Random(7)
        positions = list(range(0, 128, 5)) + [128 + generator.randrange(index_bytes) for _ in range(40)]
        for entry in range(entry_count):
            offset, size = struct.unpack_from("<QQ", content, 128 + 160 * entry + 96)
            positions.append(generator.choice((offset, offset + size - 1, offset + generator.randrange(size))))
        for position in positions:
            flipped = bytearray(content)
            flipped[position] ^= 1 << generator.randrange(8)
            self.damaged(bytes(flipped))

    def test_other_formats_are_told_apart(self):
        content = bytearray(ARCHIVE.read_bytes())
        struct.pack_into("<I", content, 8, 2)
        self.damaged(bytes(content), ["ARCHIVE_VERSION", "2"])
        self.damaged(b"\x7fELF" + bytes(500), ["ARCHIVE_CORRUPT"])

    def test_unreadable(self):
        self.expect_error(FAILURE, "ARCHIVE_NOT_FOUND", "archive", "list", self.folder / "missing.fda")
        self.expect_error(FAILURE, "ARCHIVE_", "archive", "list", self.folder)
        self.expect_error(FAILURE, "ARCHIVE_", "archive", "verify", "/dev/zero")


if __name__ == "__main__":
    unittest.main()
