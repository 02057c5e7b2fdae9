"""Small archives written from docs/archive-format.md alone, whole or wrong in one place, for what must be refused."""
import struct

import zstd
from reader import (CANDIDATE, ENTRY, HEADER, SLOT, TUNING_ROW, TUNING_SLOT, Candidate, Entry, Header, Slot, TuningRow, TuningSlot,
                    padded)
from xxh3 import xxh3_64

OP = "op"
KEYS = (5, 5, 9)  # of the entries a, b and c
EMPTY = Slot(0, 0, 0, 0, bytes(12))
UNTUNED = TuningSlot(0, 0, 0, 0, 0, bytes(4), bytes(4))


def image_of(seed, size=3000):
    return b"\x7fELF" + bytes((i // 7 * 31 + seed * i * i // 64) & 255 for i in range(4, size))


class Maker:
    """The parts of an archive, to be changed before `content` puts them together and makes the checksums right."""

    def __init__(self, abi_id):
        self.header = Header(b"FLYDSLFA", 1, 128, None, abi_id, 100, 0, b"gfx950".ljust(24, b"\0"), None, None, None, None, None, 0,
                             None, None, None, None, None, 0, None)
        self.dictionary = b""
        self.strings = bytearray()
        self.frames = [zstd.compress(image_of(seed)) for seed in (1, 2, 3)]
        self.images = [image_of(seed) for seed in (1, 2, 3)]
        self.entries = [Entry(self.text(name), self.text(OP), self.text("native"), self.text("gfx950"), self.text(name + "_symbol"), 1, 77,
                              16, 64, 256, 1, 1, 128, 64, 0, 4096, 0, 0, 100, 50, 0, key, None, None, None, None, None, bytes(24))
                        for name, key in zip("abc", KEYS)]
        self.candidates = [Candidate(1, 16, 0, 1000, 0, 1000, 0), Candidate(0, 2, 0, 1000, 0, 1000, 0), Candidate(2, 2, 0, 100, 0, 1000, 0)]
        self.slots = [EMPTY] * 8
        self.place(Slot(5, self.text(OP), 0, 2, bytes(12)))
        self.place(Slot(9, self.text(OP), 2, 1, bytes(12)))
        # One key with two tuned problems, each of which has one of the box's cells.
        self.tuning_rows = [TuningRow(candidate, self.text("model"), rows, 128, 8, 16, 256, 5000) for candidate, rows in ((0, 64), (1, 91))]
        self.tuning_cells = bytes((0, 1))
        self.tuning_slots = [UNTUNED] * 2
        self.tuning_slots[xxh3_64(OP.encode(), 7) % 2] = TuningSlot(7, self.text(OP), 0, 2, 0, bytes((12, 14, 6, 8)), bytes((2, 1, 1, 1)))
        self.frame_changes = {}
        self.header_changes = {}

    def text(self, value):
        value = value.encode("latin-1") + b"\0"
        at = self.strings.find(value)
        while at > 0 and self.strings[at - 1] != 0:
            at = self.strings.find(value, at + 1)
        if at < 0:
            at = len(self.strings)
            self.strings += value
        return at

    def home(self, slot):
        return xxh3_64(OP.encode(), slot.functional_key) % len(self.slots)

    def place(self, slot):
        at = self.home(slot)
        while self.slots[at].count:
            at = (at + 1) % len(self.slots)
        self.slots[at] = slot

    def used(self, nth=0):
        return [i for i, slot in enumerate(self.slots) if slot.count][nth]

    def entry(self, index, **changes):
        """Fields of what the code object decides are changed last."""
        of_frame = {"frame_offset", "frame_bytes", "image_bytes", "frame_checksum", "image_checksum"}
        self.frame_changes.setdefault(index, {}).update({k: v for k, v in changes.items() if k in of_frame})
        self.entries[index] = self.entries[index]._replace(**{k: v for k, v in changes.items() if k not in of_frame})

    def slot(self, at, **changes):
        self.slots[at] = self.slots[at]._replace(**changes)

    def tuning(self, **changes):
        at = [i for i, slot in enumerate(self.tuning_slots) if slot.count][0]
        self.tuning_slots[at] = self.tuning_slots[at]._replace(**changes)

    def tuning_row(self, index, **changes):
        self.tuning_rows[index] = self.tuning_rows[index]._replace(**changes)

    def candidate(self, index, **changes):
        self.candidates[index] = self.candidates[index]._replace(**changes)

    def content(self):
        parts_bytes = (len(self.entries) * 160 + padded(len(self.strings)) + len(self.slots) * 32 + len(self.candidates) * 48
                       + len(self.tuning_slots) * 32 + len(self.tuning_rows) * 48 + padded(len(self.tuning_cells))
                       + padded(len(self.dictionary)))
        offset, body, entries = 128 + parts_bytes, b"", []
        for index, (entry, frame, image) in enumerate(zip(self.entries, self.frames, self.images)):
            entry = entry._replace(frame_offset=offset + len(body), frame_bytes=len(frame), image_bytes=len(image),
                                   frame_checksum=xxh3_64(frame), image_checksum=xxh3_64(image))
            entries.append(entry._replace(**self.frame_changes.get(index, {})))
            body += frame.ljust(padded(len(frame)), b"\0")
        parts = [b"".join(ENTRY.pack(*entry) for entry in entries), bytes(self.strings), b"".join(SLOT.pack(*s) for s in self.slots),
                 b"".join(CANDIDATE.pack(*c) for c in self.candidates),
                 b"".join(TUNING_SLOT.pack(*s) for s in self.tuning_slots), b"".join(TUNING_ROW.pack(*r) for r in self.tuning_rows),
                 self.tuning_cells, self.dictionary]
        index = b"".join(part.ljust(padded(len(part)), b"\0") for part in parts)
        header = self.header._replace(file_bytes=128 + len(index) + len(body), entries=len(entries), strings=len(self.strings),
                                      slots=len(self.slots), candidates=len(self.candidates), dictionary=len(self.dictionary),
                                      tuning_slots=len(self.tuning_slots), tuning_rows=len(self.tuning_rows),
                                      tuning_cells=len(self.tuning_cells),
                                      index_bytes=len(index), index_checksum=xxh3_64(index), checksum=0)
        return sealed(HEADER.pack(*header._replace(**self.header_changes)) + index + body)


def sealed(content, index=False):
    """With the right header checksum, and the index's too if asked."""
    content = bytearray(content)
    if index:
        index_bytes, = struct.unpack_from("<Q", content, 88)
        struct.pack_into("<Q", content, 96, xxh3_64(content[128:128 + index_bytes]))
    struct.pack_into("<Q", content, 120, xxh3_64(content[:120]))
    return bytes(content)
