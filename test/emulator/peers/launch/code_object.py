"""Reads the kernel metadata of an AMD code object (ELF note NT_AMDGPU_METADATA, MessagePack; LLVM AMDGPU User Guide)."""
import pathlib
import struct


def _msgpack(data, at):
    b = data[at]
    at += 1

    def number(fmt):
        return struct.unpack_from(">" + fmt, data, at)[0], at + struct.calcsize(fmt)

    def many(count, at, pairs):
        items = []
        for _ in range(count * (2 if pairs else 1)):
            item, at = _msgpack(data, at)
            items.append(item)
        return (dict(zip(items[::2], items[1::2])) if pairs else items), at

    if b < 0x80:
        return b, at
    if b >= 0xE0:
        return b - 256, at
    if b < 0x90:
        return many(b & 15, at, True)
    if b < 0xA0:
        return many(b & 15, at, False)
    if b < 0xC0:
        return data[at:at + (b & 31)].decode(), at + (b & 31)
    if b in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[b], at
    if b in (0xD9, 0xDA, 0xDB):
        size, at = number("BHI"[b - 0xD9])
        return data[at:at + size].decode(), at + size
    if 0xCA <= b <= 0xD3:
        return number("fdBHIQbhiq"[b - 0xCA])
    if b in (0xDC, 0xDD, 0xDE, 0xDF):
        count, at = number("HIHI"[b - 0xDC])
        return many(count, at, b >= 0xDE)
    raise ValueError(f"MessagePack byte {b:#x}")


def metadata(path):
    elf = pathlib.Path(path).read_bytes()
    headers, size, count = struct.unpack_from("<Q14xHH", elf, 32)
    for i in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", elf, headers + i * size)
        end = offset + length
        while kind == 4 and offset < end:  # PT_NOTE
            name, desc, note = struct.unpack_from("<III", elf, offset)
            body = offset + 12 + (name + 3 & ~3)
            if note == 32 and elf[offset + 12:offset + 12 + name] == b"AMDGPU\0":
                return _msgpack(elf[body:body + desc], 0)[0]
            offset = body + (desc + 3 & ~3)
    raise ValueError(f"{path}: no kernel metadata")


def kernel_metadata(path, symbol=None):
    kernels = metadata(path)["amdhsa.kernels"]
    chosen = [k for k in kernels if symbol in (None, k[".name"])]
    if len(chosen) != 1:
        raise ValueError(f"{path}: kernels {[k['.name'] for k in kernels]}, wanted {symbol}")
    return chosen[0]
