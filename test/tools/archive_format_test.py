"""docs/archive-format.md read twice: by the library, through the command, and by archive_format/reader.py, which shares no code with it. They
agree on the built archive, on small ones written by archive_format/maker.py, and on what is refused and why."""
import pathlib
import random
import resource
import struct
import sys
import unittest

from tool import ARCHIVE, ToolTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "codegen"), str(ROOT / "test" / "tools" / "archive_format")]
import reader
import zstd
from describe.registry import OPERATORS
from generate.layout import abi_id, functional_key, layout_id
from maker import Maker, image_of, sealed
from xxh3 import xxh3_64

ABI = abi_id(OPERATORS)
FAILURE = 4
MIB = 1 << 20
CORRUPT = "ARCHIVE_CORRUPT"


def made(change=None):
    maker = Maker(ABI)
    if change:
        change(maker)
    return maker.content()


def arch(name):
    def change(m):
        m.header_changes["arch"] = name.ljust(24, b"\0")
        del m.entries[:], m.candidates[:], m.slots[:], m.tuning_slots[:], m.tuning_rows[:]
    return change


def target(name):
    return lambda m: m.entry(1, target_id=m.text(name))


def frame(content, image=image_of(1)):
    def change(m):
        m.frames[0], m.images[0] = content, image
    return change


def shared(**changes):
    """Entry b with the frame of a, but for `changes`."""
    def change(m):
        m.frames[1], m.images[1] = m.frames[0], m.images[0]
        first = reader.Archive(m.content(), ABI).entries[0]
        m.entry(1, **{"frame_offset": first.frame_offset, **{k: v(first) for k, v in changes.items()}})
    return change


def moved(step, size=None):
    """The frame of b at `step` bytes from where that of a begins."""
    def change(m):
        first = reader.Archive(m.content(), ABI).entries[0]
        m.entry(1, frame_offset=first.frame_offset + step, **({} if size is None else {"frame_bytes": size}))
    return change


def unsized(image):
    """A zstd frame of one raw block that does not say its content size."""
    return b"\x28\xb5\x2f\xfd\x00\x58" + (len(image) << 3 | 1).to_bytes(3, "little") + image


def nested(m):
    """The frame of b lies, whole and good, in a raw block of a's."""
    m.images[0] = b"\x7fELF" + m.frames[1]
    size = len(m.images[0])
    m.frames[0] = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", size) + (size << 3 | 1).to_bytes(3, "little") + m.images[0]
    reader.check(m.content(), ABI)
    moved(len(m.frames[0]) - len(m.frames[1]))(m)


def forged(content):
    """A frame of 64 MiB of zeros that says it holds `content` bytes (single segment, 4-byte content size)."""
    bomb = bytearray(zstd.compress(bytes(64 * MIB), 1))
    assert bomb[4] >> 6 == 2, "content size of 4 bytes"
    struct.pack_into("<I", bomb, 5 if bomb[4] & 32 else 6, content)
    return bytes(bomb)


SKIPPED = b"\x50\x2a\x4d\x18" + struct.pack("<I", 8) + bytes(8)
GOOD = zstd.compress(image_of(1))

REFUSED = {
    "overlap: same offset, another size": moved(0),
    "overlap: 8 bytes into the other": moved(8),
    "overlap: inside the other": moved(16, 32),
    "overlap: a whole frame in the other": nested,
    "overlap: the last byte of the other": lambda m: moved(len(m.frames[0]) - 1)(m),
    "shared frame of another content size": shared(image_bytes=lambda e: e.image_bytes + 1),
    "shared frame of another checksum": shared(frame_checksum=lambda e: e.frame_checksum ^ 1),
    "shared frame of another image checksum": shared(image_checksum=lambda e: e.image_checksum ^ 1),
    "shared frame, shorter": shared(frame_bytes=lambda e: e.frame_bytes - 1),
    "frame in the header": lambda m: m.entry(0, frame_offset=0),
    "frame in the index": lambda m: m.entry(0, frame_offset=128),
    "frame past the end": lambda m: m.entry(2, frame_offset=1 << 40),
    "frame that wraps around": lambda m: m.entry(2, frame_offset=(1 << 64) - 8),
    "bomb: one byte above the cap": frame(zstd.compress(bytes(64 * MIB + 1), 1), bytes(64 * MIB + 1)),
    "bomb: more than the index says": frame(zstd.compress(bytes(64 * MIB), 1)),
    "bomb: more than the frame and the index say": frame(forged(3000)),
    "bomb: less than the frame and the index say": lambda m: (frame(GOOD)(m), m.entry(0, image_bytes=64 * MIB)),
    "bomb: a second frame": frame(GOOD + zstd.compress(bytes(64 * MIB), 1)),
    "bomb: frames of nothing behind": frame(GOOD + zstd.compress(b"") * 1000),
    "bomb: image of 2^64 - 1 bytes": lambda m: m.entry(0, image_bytes=(1 << 64) - 1),
    "bomb: frame of 2^64 - 1 bytes": lambda m: m.entry(0, frame_bytes=(1 << 64) - 1),
    "bomb: a window of 3.75 TiB": frame(b"\x28\xb5\x2f\xfd\x00\xff" + unsized(image_of(1))[6:]),
    "skippable frame in front": frame(SKIPPED + GOOD),
    "skippable frame behind": frame(GOOD + SKIPPED),
    "bytes behind the frame": frame(GOOD + bytes(8)),
    "frame cut": frame(GOOD[:-1]),
    "frame without its content size": frame(unsized(image_of(1))),
    "no zstd frame": frame(image_of(1)),
    "code object changed": frame(zstd.compress(image_of(4))),
    "dictionary of garbage": lambda m: setattr(m, "dictionary", struct.pack("<II", 0xEC30A437, 1) + bytes(range(256)) * 64),
    "path in the architecture": arch(b"../gfx950"),
    "absolute path as the architecture": arch(b"/dev/zero"),
    "path behind the architecture": arch(b"gfx950/../x"),
    "architecture with a new line": arch(b"gfx950\nx"),
    "architecture that clears a terminal": arch(b"gfx\x1b[2J"),
    "architecture with features": arch(b"gfx950:xnack-"),
    "architecture that goes on behind its end": arch(b"gfx950\0x"),
    "architecture that fills its field": arch(b"gfx" + b"9" * 21),
    "architecture without a name": arch(b""),
    "path in the target id": target("../gfx950"),
    "path behind the target id": target("gfx950/../gfx950"),
    "target id of another architecture": target("gfx942"),
    "target id whose feature is stated twice": target("gfx950:xnack+:xnack-"),
    "target id of an unknown feature": target("gfx950:tgsplit+"),
    "all of another architecture but the target ids": lambda m: m.header_changes.update(arch=b"gfx942".ljust(24, b"\0")),
    "name with an escape sequence": lambda m: m.entry(2, name=m.text("c\x1b[31m")),
    "name of 256 bytes": lambda m: m.entry(2, name=m.text("c" * 256)),
    "candidate of another key": lambda m: m.candidate(0, entry=2),
    "candidates shared with another key": lambda m: m.slot(m.used(1), first=1),
    "slot away from its hash, behind a gap": lambda m: m.slots.insert(0, m.slots.pop()),
    "tuning row of no candidate": lambda m: m.tuning_row(0, candidate=3),
    "tuning row whose origin is no string": lambda m: m.tuning_row(0, origin=1 << 20),
    "tuning row of an odd alignment": lambda m: m.tuning_row(1, align_bytes=3),
    "tuning row of no compute units": lambda m: m.tuning_row(1, compute_units=0),
    "tuning rows of another operator": lambda m: m.tuning(op=m.text("other")),
    "tuning rows outside the table": lambda m: m.tuning(count=3),
    "tuning rows that wrap around": lambda m: m.tuning(first_row=(1 << 32) - 1),
    "more tuning rows than a cell can name": lambda m: (m.tuning(count=257), setattr(m, "tuning_rows", m.tuning_rows * 129)),
    "tuning cell of a row that is not there": lambda m: setattr(m, "tuning_cells", bytes((0, 2))),
    "tuning cells outside the table": lambda m: m.tuning(first_cell=1),
    "tuning box of 2^32 cells": lambda m: m.tuning(extent=bytes((255, 255, 255, 255)), lowest=bytes(4)),
    "tuning box without cells": lambda m: m.tuning(extent=bytes((0, 1, 1, 1))),
    "tuning box beyond the coordinates": lambda m: m.tuning(lowest=bytes((255, 14, 6, 8))),
    "tuning slots that are all used": lambda m: setattr(m, "tuning_slots", [s for s in m.tuning_slots if s.count]),
    "tuning slots, three": lambda m: m.tuning_slots.append(m.tuning_slots[0]),
    "tuning slot of no operator": lambda m: m.tuning(op=1 << 20),
    "slots that are all used": lambda m: setattr(m, "slots", [m.slots[m.used()]] * 8),
}
ACCEPTED = {
    "tuning row of the first that fits": lambda m: m.tuning_row(0, candidate=reader.FIRST_THAT_FITS),
    "as made": None,
    "shared frame": shared(),
    "no kernels": arch(b"gfx950"),
    "no tuning": lambda m: (setattr(m, "tuning_slots", []), setattr(m, "tuning_rows", []), setattr(m, "tuning_cells", b"")),
    "another architecture": lambda m: (m.header_changes.update(arch=b"gfx942".ljust(24, b"\0")),
                                       [m.entry(i, target_id=m.text("gfx942:sramecc+:xnack-")) for i in range(3)]),
    "name that looks like a path": lambda m: m.entry(2, name=m.text("c/../../../etc/passwd")),
    "name of 255 bytes": lambda m: m.entry(2, name=m.text("c" * 255)),
    "image of 64 MiB": frame(zstd.compress(bytes(64 * MIB), 1), bytes(64 * MIB)),
}


class ArchiveFormatTest(ToolTest):
    def write(self, content):
        path = self.folder / "made.fda"
        path.write_bytes(content)
        return path

    def refuse(self, content, status=CORRUPT):
        with self.assertRaises(reader.Refused) as refused:
            reader.check(content, ABI)
        self.assertEqual(refused.exception.status, status)
        self.expect_error(FAILURE, f" {status}: ", "archive", "verify", self.write(content))

    def compare_listing(self, path):
        archive = reader.check(path.read_bytes(), ABI)
        verified = self.tool("archive", "verify", path)
        total = sum(entry.image_bytes for entry in archive.entries)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))
        self.assertIn(f"good, {archive.arch}, {len(archive.entries)} kernels, {total} bytes", verified.stdout)
        listing = self.tool("archive", "list", path).stdout.splitlines()
        self.assertEqual(listing[0], f"{path}: {archive.arch}, {len(archive.entries)} kernels")
        expected = [[archive.string(e.name), archive.string(e.op), archive.string(e.backend), archive.string(e.target_id)]
                    + [str(value) for value in (e.vgpr_count, e.sgpr_count, e.lds_static_bytes + e.lds_dynamic_bytes, e.scratch_bytes,
                                                e.frame_bytes, e.image_bytes)] for e in archive.entries]
        self.assertEqual([line.split() for line in listing[2:]], expected)
        return archive

    def test_checksums(self):
        """Of each of XXH3's ways by length: values of xxHash 0.8.1."""
        for size, seed, value in ((0, 0, 0x2D06800538D394C2), (3, 1, 0xDC7E936CD5B1F73A), (7, 2, 0xAE2EC7091C2E5813),
                                  (12, 3, 0xD153998472E90D29), (19, 4, 0x18BCE21FC8AABE1F), (60, 5, 0xBD07531530EBADCA),
                                  (100, 6, 0x355A2B1EB5F7F4F6), (200, 0, 0x7C64F3B17285E96A), (1024, 0, 0xDC5ACF0B043C445B),
                                  (5000, 0, 0x6ABE8BE5ABCB2760)):
            self.assertEqual(xxh3_64(bytes(i * 7 % 256 for i in range(size)), seed), value, size)

    def test_built_archive(self):
        archive = self.compare_listing(ARCHIVE)
        described = {instance.name: (op, instance) for op in OPERATORS for instance in op.instances("gfx950")}
        self.assertEqual(archive.names, sorted(described))
        for name, entry in zip(archive.names, archive.entries):
            op, instance = described[name]
            self.assertEqual(entry.kernarg_layout_id, layout_id(op), name)
            self.assertEqual(entry.functional_key, functional_key(op, instance), name)
            slot = archive.find(op.name, entry.functional_key)
            listed = archive.candidates[slot.first:slot.first + slot.count]
            self.assertIn(name, [archive.names[candidate.entry] for candidate in listed])
            image = archive.image(entry)
            self.assertEqual(image[:4], b"\x7fELF", name)
            self.assertIn(b"\0" + archive.string(entry.symbol).encode() + b"\0", image, name)

    def test_made_archives(self):
        for name, change in ACCEPTED.items():
            with self.subTest(name):
                self.compare_listing(self.write(made(change)))

    def test_refused(self):
        for name, change in REFUSED.items():
            with self.subTest(name):
                self.refuse(made(change))
        # Of all children: the largest legal frame and image are 64 MiB each; what files claim beyond them is not allocated.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 640 << 10)

    def test_other_versions_and_abis(self):
        for version in (0, 2, 0xFFFFFFFF):
            content = made(lambda m: m.header_changes.update(version=version))
            self.refuse(content, "ARCHIVE_VERSION")
            self.refuse(content[:64] + bytes(len(content) - 64), "ARCHIVE_VERSION")
        for bit in range(64):
            self.refuse(made(lambda m: m.header_changes.update(abi_id=ABI ^ 1 << bit)), "ARCHIVE_MISMATCH")

    def test_absurd_counts(self):
        caps = {"entries": (65536, 160), "strings": (16 * MIB, 1), "slots": (MIB, 32), "candidates": (MIB, 48), "dictionary": (MIB, 1),
                "tuning_slots": (65536, 32), "tuning_rows": (MIB, 48), "tuning_cells": (4 * MIB, 1)}
        header = reader.Archive(made(), ABI).header
        for field, (cap, size) in caps.items():
            for count in (getattr(header, field) + 8, cap, cap + 1, 2 * cap, 1 << 31, (1 << 32) - 1):
                # What the file has, what the count makes of it, and that in 32 bits.
                index_bytes = header.index_bytes + (reader.padded(count * size) - reader.padded(getattr(header, field) * size))
                for claimed in (header.index_bytes, index_bytes, index_bytes % (1 << 32)):
                    with self.subTest(field, count=count, index_bytes=claimed):
                        self.refuse(made(lambda m: m.header_changes.update({field: count, "index_bytes": claimed})))
        for field in ("index_bytes", "file_bytes"):
            for value in (0, 8, 1 << 32, 1 << 63, (1 << 64) - 128, (1 << 64) - 1):
                with self.subTest(field, value=value):
                    self.refuse(made(lambda m: m.header_changes.update({field: value})))

    def test_every_byte_and_bit_of_the_header(self):
        content = made()
        for length in range(128):
            self.refuse(content[:length])
        for bit in range(128 * 8):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            self.refuse(bytes(flipped), "ARCHIVE_VERSION" if 8 <= bit // 8 < 12 else CORRUPT)

    def test_every_byte_of_the_index(self):
        """A byte changed and the checksums made right: both take the file, or both refuse it for the same reason."""
        content = made()
        end = 128 + reader.Archive(content, ABI).header.index_bytes
        generator, taken = random.Random(11), 0
        for position in range(12, end):
            if 120 <= position < 128:
                continue
            changed = bytearray(content)
            changed[position] = (changed[position] + generator.choice((1, 255, generator.randrange(1, 256)))) % 256
            changed = sealed(changed, index=not 88 <= position < 104)
            try:
                reader.check(changed, ABI)
            except reader.Refused as refused:
                self.refuse(changed, refused.status)
            else:
                verified = self.tool("archive", "verify", self.write(changed))
                self.assertEqual(verified.returncode, 0, (position, verified.stderr))
                taken += 1
        # Sizes of LDS, ranges of candidates and the like are free; offsets, counts and reserved fields are not.
        self.assertGreater(taken, 100)
        self.assertLess(taken, end - 400)

    def test_paths(self):
        loop = self.folder / "loop.fda"
        loop.symlink_to(loop)
        self.expect_error(FAILURE, "ARCHIVE_IO", "archive", "verify", loop)
        self.expect_error(FAILURE, "ARCHIVE_IO", "archive", "verify", self.folder / ("x" * 300))
        self.expect_error(FAILURE, "ARCHIVE_IO", "archive", "verify", "/" + "../" * 2000 + "made.fda")
        self.expect_error(FAILURE, "ARCHIVE_NOT_FOUND", "archive", "verify", self.write(made()) / "made.fda")
        (self.folder / "flydsl_aot.gfx950.fda").mkdir()
        self.expect_error(FAILURE, "ARCHIVE_IO", "archive", "verify", self.folder / "flydsl_aot.gfx950.fda")


if __name__ == "__main__":
    unittest.main()
