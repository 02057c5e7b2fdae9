"""XXH3-64 in plain Python, after its specification: a second implementation, so that a test of checksums is one."""
import struct
from operator import mul

MASK = (1 << 64) - 1
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
STRIPE = 64
BLOCK = 1024
# The secret as 16 stripes of a block meet it: 8 bytes further for each.
BLOCK_SECRET = b"".join(SECRET[8 * i:8 * i + STRIPE] for i in range(BLOCK // STRIPE))


def _u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def _u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def _fold(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def _avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & MASK
    return h ^ h >> 32


def _avalanche64(h):
    h ^= h >> 33
    h = h * P64[1] & MASK
    h ^= h >> 29
    h = h * P64[2] & MASK
    return h ^ h >> 32


def _rotl(h, bits):
    return (h << bits | h >> 64 - bits) & MASK


def _swap64(value):
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def _up_to_16(data, seed):
    size = len(data)
    if size > 8:
        low = _u64(data, 0) ^ ((_u64(SECRET, 24) ^ _u64(SECRET, 32)) + seed & MASK)
        high = _u64(data, size - 8) ^ ((_u64(SECRET, 40) ^ _u64(SECRET, 48)) - seed & MASK)
        return _avalanche(size + _swap64(low) + high + _fold(low, high) & MASK)
    if size >= 4:
        seed ^= int.from_bytes((seed & 0xFFFFFFFF).to_bytes(4, "little"), "big") << 32
        h = _u32(data, size - 4) + (_u32(data, 0) << 32) ^ ((_u64(SECRET, 8) ^ _u64(SECRET, 16)) - seed & MASK)
        h ^= _rotl(h, 49) ^ _rotl(h, 24)
        h = h * 0x9FB21C651E98DF25 & MASK
        h ^= (h >> 35) + size
        h = h * 0x9FB21C651E98DF25 & MASK
        return h ^ h >> 28
    if size > 0:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche64(combined ^ ((_u32(SECRET, 0) ^ _u32(SECRET, 4)) + seed & MASK))
    return _avalanche64(seed ^ _u64(SECRET, 56) ^ _u64(SECRET, 64))


def _up_to_240(data, seed):
    size = len(data)

    def mix(at, secret):
        return _fold(_u64(data, at) ^ (_u64(SECRET, secret) + seed & MASK),
                     _u64(data, at + 8) ^ (_u64(SECRET, secret + 8) - seed & MASK))

    total = size * P64[0]
    if size <= 128:
        for i in range((size - 1) // 32 + 1):
            total += mix(16 * i, 32 * i) + mix(size - 16 * (i + 1), 32 * i + 16)
        return _avalanche(total & MASK)
    total = _avalanche(total + sum(mix(16 * i, 16 * i) for i in range(8)) & MASK)
    total += sum(mix(16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    return _avalanche(total + mix(size - 16, 119) & MASK)


def _accumulate(lanes, data, secret):
    """Adds whole stripes, at most a block."""
    keyed = (int.from_bytes(data, "little") ^ int.from_bytes(secret[:len(data)], "little")).to_bytes(len(data), "little")
    halves = struct.unpack(f"<{len(data) // 4}I", keyed)
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    return [lanes[i] + sum(map(mul, halves[2 * i::16], halves[2 * i + 1::16])) + sum(words[i ^ 1::8]) & MASK
            for i in range(8)]


def _long(data):
    size = len(data)
    lanes = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    scramble = struct.unpack_from("<8Q", SECRET, len(SECRET) - STRIPE)
    whole = (size - 1) // BLOCK * BLOCK
    for at in range(0, whole, BLOCK):
        lanes = _accumulate(lanes, data[at:at + BLOCK], BLOCK_SECRET)
        lanes = [(lane ^ lane >> 47 ^ key) * P32[0] & MASK for lane, key in zip(lanes, scramble)]
    stripes = (size - 1 - whole) // STRIPE * STRIPE
    lanes = _accumulate(lanes, data[whole:whole + stripes], BLOCK_SECRET)
    lanes = _accumulate(lanes, data[size - STRIPE:], SECRET[len(SECRET) - STRIPE - 7:])
    total = size * P64[0]
    for i in range(4):
        total += _fold(lanes[2 * i] ^ _u64(SECRET, 11 + 16 * i), lanes[2 * i + 1] ^ _u64(SECRET, 19 + 16 * i))
    return _avalanche(total & MASK)


def xxh3_64(data, seed=0):
    data = bytes(data)
    if len(data) <= 16:
        return _up_to_16(data, seed)
    if len(data) <= 240:
        return _up_to_240(data, seed)
    if seed:
        raise NotImplementedError("seeds of more than 240 bytes: no archive needs them")
    return _long(data)
