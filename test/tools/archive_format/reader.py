"""A reader of kernel archives written from docs/archive-format.md alone: what it and the library say of a file must agree."""
import math
import re
import struct
from collections import namedtuple

import zstd
from xxh3 import xxh3_64

MIB = 1 << 20
HEADER = struct.Struct("<8sIIQQII24sIIIIIIQQIIIIQ")
Header = namedtuple("Header", "magic version header_bytes file_bytes abi_id library_version flags arch entries strings slots "
                    "candidates dictionary reserved index_bytes index_checksum tuning_slots tuning_rows tuning_cells reserved2 checksum")
ENTRY = struct.Struct("<6IQ2I3I3I5II6Q24s")
Entry = namedtuple("Entry", "name op backend target_id symbol grid_rule kernarg_layout_id kernarg_bytes wave_size block0 block1 "
                   "block2 tile0 tile1 tile2 lds_static_bytes lds_dynamic_bytes scratch_bytes vgpr_count sgpr_count reserved "
                   "functional_key frame_offset frame_bytes image_bytes frame_checksum image_checksum reserved_bytes")
SLOT = struct.Struct("<QIII12s")
Slot = namedtuple("Slot", "functional_key op first count reserved")
CANDIDATE = struct.Struct("<IIQQQQQ")
Candidate = namedtuple("Candidate", "entry align_bytes seq_q_min seq_q_max seq_k_min seq_k_max reserved")
TUNING_SLOT = struct.Struct("<QIIII4s4s")
FIRST_THAT_FITS = 0xFFFFFFFF  # in place of a tuning row's candidate
TuningSlot = namedtuple("TuningSlot", "key op first_row count first_cell lowest extent")
TUNING_ROW = struct.Struct("<IIQQQIIQ")
TuningRow = namedtuple("TuningRow", "candidate origin rows keys parallel align_bytes compute_units figure_ns")
assert (HEADER.size, ENTRY.size, SLOT.size, CANDIDATE.size) == (128, 160, 32, 48)
assert (TUNING_SLOT.size, TUNING_ROW.size) == (32, 48)
STRING_FIELDS = ("name", "op", "backend", "target_id", "symbol")
PROCESSOR = r"(?:gfx|sm_)[a-z0-9-]+"
TARGET_ID = re.compile(rf"({PROCESSOR})((?::(?:sramecc|xnack)[+-])*)")


class Refused(Exception):
    def __init__(self, status, reason):
        super().__init__(f"{status}: {reason}")
        self.status = status


def need(holds, reason, status="ARCHIVE_CORRUPT"):
    if not holds:
        raise Refused(status, reason)


def padded(size):
    return -(-size // 8) * 8


def zero(data):
    return not any(data)


def power_of_two(value):
    return value > 0 and value & (value - 1) == 0


class Archive:
    """Everything of a file's index; `image` inflates a code object."""

    def __init__(self, content, abi_id):
        self.content = content
        self.header = self._header(abi_id)
        self.arch = self.header.arch.rstrip(b"\0").decode("ascii")
        self._split(self._index())
        self.names = [self.string(entry.name) for entry in self._checked_entries()]
        self._check_frames()
        self._check_selection()
        self._check_tuning()

    def _header(self, abi_id):
        need(len(self.content) >= HEADER.size, "shorter than a header")
        header = Header._make(HEADER.unpack_from(self.content))
        need(header.magic == b"FLYDSLFA", "magic")
        need(header.version == 1, "format version", "ARCHIVE_VERSION")
        need(xxh3_64(self.content[:120]) == header.checksum, "header checksum")
        need(header.header_bytes == 128 and header.flags & ~1 == 0 and header.reserved == 0 and header.reserved2 == 0, "reserved")
        need(header.abi_id == abi_id, "ABI id", "ARCHIVE_MISMATCH")
        need(header.file_bytes == len(self.content), "file bytes")
        arch = header.arch.rstrip(b"\0")
        need(len(arch) < 24 and re.fullmatch(PROCESSOR.encode(), arch), "architecture")
        need(header.entries <= 65536 and header.strings <= 16 * MIB and header.slots <= MIB and header.candidates <= MIB
             and header.dictionary <= MIB and header.tuning_slots <= 65536 and header.tuning_rows <= MIB
             and header.tuning_cells <= 4 * MIB, "cap")
        need(all(count == 0 or power_of_two(count) for count in (header.slots, header.tuning_slots)), "slots are not a power of two")
        need(header.index_bytes == header.entries * 160 + padded(header.strings) + header.slots * 32 + header.candidates * 48
             + header.tuning_slots * 32 + header.tuning_rows * 48 + padded(header.tuning_cells) + padded(header.dictionary)
             and 128 + header.index_bytes <= len(self.content), "index bytes")
        return header

    def _index(self):
        index = self.content[128:128 + self.header.index_bytes]
        need(xxh3_64(index) == self.header.index_checksum, "index checksum")
        return index

    def _split(self, index):
        at = 0

        def take(size):
            nonlocal at
            part, padding = index[at:at + size], index[at + size:at + padded(size)]
            need(zero(padding), "padding")
            at += padded(size)
            return part

        header = self.header
        self.entries = [Entry._make(row) for row in ENTRY.iter_unpack(take(header.entries * 160))]
        self.strings = take(header.strings)
        self.slots = [Slot._make(row) for row in SLOT.iter_unpack(take(header.slots * 32))]
        self.candidates = [Candidate._make(row) for row in CANDIDATE.iter_unpack(take(header.candidates * 48))]
        self.tuning_slots = [TuningSlot._make(row) for row in TUNING_SLOT.iter_unpack(take(header.tuning_slots * 32))]
        self.tuning_rows = [TuningRow._make(row) for row in TUNING_ROW.iter_unpack(take(header.tuning_rows * 48))]
        self.tuning_cells = take(header.tuning_cells)
        self.dictionary = take(header.dictionary)

    def string(self, offset):
        end = self.strings.find(b"\0", offset)
        need(offset < len(self.strings) and 0 <= end - offset <= 255, "string outside, too long or not terminated")
        text = self.strings[offset:end]
        need(all(0x20 <= byte <= 0x7E for byte in text), "string is not printable")
        return text.decode("ascii")

    def _checked_entries(self):
        previous = None
        for entry in self.entries:
            name = [self.string(getattr(entry, field)) for field in STRING_FIELDS][0]
            need(previous is None or previous < name, "names are not sorted and unique")
            previous = name
            need(entry.grid_rule in (1, 2), "grid rule")
            need(0 < entry.block0 * entry.block1 * entry.block2 <= 1024, "work-group")
            need(entry.tile0 > 0, "tile")
            need(entry.wave_size in (32, 64), "wave size")
            need(entry.reserved == 0 and zero(entry.reserved_bytes), "reserved")
            need(0 < entry.frame_bytes <= 64 * MIB and 0 < entry.image_bytes <= 64 * MIB, "size")
            target = TARGET_ID.fullmatch(self.string(entry.target_id))
            need(target and target[1] == self.arch and all(target[2].count(f) < 2 for f in ("sramecc", "xnack")), "target id")
            yield entry

    def _check_frames(self):
        """Inside the file, behind the index, and apart from each other unless they are the same."""
        frames = sorted({(e.frame_offset, e.frame_bytes, e.image_bytes, e.frame_checksum, e.image_checksum) for e in self.entries})
        end = 128 + self.header.index_bytes
        for offset, size, *_ in frames:
            need(end <= offset, "frames overlap each other or the index")
            end = offset + size
        need(end <= len(self.content), "frame outside the file")

    def _check_selection(self):
        need(not self.slots or any(slot.count == 0 for slot in self.slots), "no empty slot")
        for candidate in self.candidates:
            need(candidate.entry < len(self.entries), "candidate's entry")
            need(power_of_two(candidate.align_bytes) and candidate.reserved == 0, "candidate")
        for slot in self.slots:
            if slot.count == 0:
                need(zero(SLOT.pack(*slot)), "empty slot is not zero")
                continue
            need(zero(slot.reserved), "reserved")
            op = self.string(slot.op)
            need(slot.count <= 64 and slot.first + slot.count <= len(self.candidates), "candidates outside the table")
            for candidate in self.candidates[slot.first:slot.first + slot.count]:
                entry = self.entries[candidate.entry]
                need(entry.functional_key == slot.functional_key and self.string(entry.op) == op, "candidate of another key")
        # In a pass of its own: a probe looks at other slots than the one it starts from.
        for slot in self.slots:
            need(slot.count == 0 or self.find(self.string(slot.op), slot.functional_key) is slot, "slot not reachable")

    def _check_tuning(self):
        slots, rows, cells = self.tuning_slots, self.tuning_rows, self.tuning_cells
        need(not slots or any(slot.count == 0 for slot in slots), "no empty tuning slot")
        for row in rows:
            need(row.candidate < len(self.candidates) or row.candidate == FIRST_THAT_FITS, "tuning row's candidate")
            self.string(row.origin)
            need(power_of_two(row.align_bytes) and row.compute_units > 0, "tuning row")
        for slot in slots:
            if slot.count == 0:
                need(zero(TUNING_SLOT.pack(*slot)), "empty tuning slot is not zero")
                continue
            op, box = self.string(slot.op), math.prod(slot.extent)
            need(slot.count <= 256 and slot.first_row + slot.count <= len(rows), "tuning rows outside the table")
            need(all(low + extent <= 256 for low, extent in zip(slot.lowest, slot.extent)), "box beyond the coordinates")
            need(box > 0 and slot.first_cell + box <= len(cells), "tuning cells outside the table")
            need(max(cells[slot.first_cell:slot.first_cell + box]) < slot.count, "cell of another slot's row")
            for row in rows[slot.first_row:slot.first_row + slot.count]:
                need(row.candidate == FIRST_THAT_FITS or self.string(self.entries[self.candidates[row.candidate].entry].op) == op, "tuning row of another operator")
        for slot in slots:
            need(slot.count == 0 or self.find_tuning(self.string(slot.op), slot.key) is slot, "tuning slot not reachable")

    def _probe(self, slots, op, key):
        at = xxh3_64(op.encode(), key)
        for probe in range(256 if slots else 0):
            slot = slots[(at + probe) % len(slots)]
            if slot.count == 0:
                return None
            if slot[0] == key and self.string(slot.op) == op:
                return slot
        return None

    def find(self, op, functional_key):
        """The slot of a key, or None."""
        return self._probe(self.slots, op, functional_key)

    def find_tuning(self, op, key):
        return self._probe(self.tuning_slots, op, key)

    def image(self, entry):
        frame = self.content[entry.frame_offset:entry.frame_offset + entry.frame_bytes]
        need(xxh3_64(frame) == entry.frame_checksum, "checksum of the compressed bytes")
        need(zstd.frame_size(frame) == len(frame), "not one whole frame")
        need(zstd.content_size(frame) == entry.image_bytes, "content size")
        image = zstd.decompress(frame, entry.image_bytes, self.dictionary)
        need(image is not None, "zstd")
        need(xxh3_64(image) == entry.image_checksum, "checksum of the code object")
        return image


def check(content, abi_id):
    """The archive with every code object read; raises Refused."""
    archive = Archive(content, abi_id)
    seen = set()
    for entry in archive.entries:
        frame = (entry.frame_offset, entry.frame_bytes)
        if frame not in seen:
            archive.image(entry)
        seen.add(frame)
    return archive
