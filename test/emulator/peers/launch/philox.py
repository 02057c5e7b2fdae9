"""Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") on arrays of counters."""
import numpy as np

LOW = np.uint64(0xFFFFFFFF)


def philox(seed, counter):
    """Four arrays of words below 2^32 of `counter`, four arrays (or numbers) of them; the key is `seed`, low half first."""
    c = [np.asarray(part, np.uint64) for part in counter]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        products = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [products[1] >> np.uint64(32) ^ c[1] ^ key[0], products[1] & LOW, products[0] >> np.uint64(32) ^ c[3] ^ key[1], products[0] & LOW]
        key = [key[0] + np.uint64(0x9E3779B9) & LOW, key[1] + np.uint64(0xBB67AE85) & LOW]
    return c
