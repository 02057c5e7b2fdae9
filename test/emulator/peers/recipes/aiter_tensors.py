"""What the AITER recipes share: tensors as these kernels see them, and batches of sequences.

AITER's assembly kernels for gfx950 come from the amd-aiter wheel, folder aiter_meta/hsa/gfx950. Every argument has a name in the object's
metadata; strides are in bytes. How each is launched was read from the launchers that the wheel generates
(aiter_meta/hsa/gfx950/*/codegen.py) and confirmed by results.
"""
import numpy as np

from launch import formats

HSA = "aiter_meta/hsa/gfx950"


class Tensor:
    """A tensor in (B, S, H, D) or, in group mode, (1, total, H, D) order on the device: random, filled, or UNTOUCHED."""

    UNTOUCHED = "untouched"  # contents do not matter: for launches that are timed, not judged

    def __init__(self, hip, rng, kind, batch, rows, heads, dim, fill=None):
        self.kind, self.shape = kind, (batch, rows, heads, dim)
        size = np.dtype(formats.STORAGE[kind]).itemsize
        self.row, self.head, self.batch = heads * dim * size, dim * size, rows * heads * dim * size
        if fill is None:
            raw, self.exact = formats.random_floats(rng, self.shape, kind)
            self.buffer = hip.buffer(raw)
        elif fill is Tensor.UNTOUCHED:
            self.buffer = hip.memory(self.batch * batch)
        else:
            self.buffer = hip.buffer(np.full(self.shape, fill, formats.STORAGE[kind]))

    def of(self, batch, rows):
        """(H, S, D) in float64 of one sequence."""
        return per_head(self.exact, batch, rows)

    def result(self):
        return formats.values(self.buffer.read(), self.kind)


def per_head(whole, batch, rows):
    return whole[batch, rows].transpose(1, 0, 2)


class Sequences:
    """B sequences of equal lengths, or (group mode, `lengths`) sequences of their own lengths one after the other."""

    def __init__(self, batch=1, sq=0, sk=0, lengths=None):
        self.group = lengths is not None
        self.lengths = lengths or [(sq, sk)] * batch
        self.count = len(self.lengths)
        self.longest_q, self.longest_k = (max(pair[side] for pair in self.lengths) for side in (0, 1))
        self.starts = [np.cumsum([0] + [pair[side] for pair in self.lengths]).astype(np.int32) for side in (0, 1)]
        # Extents of the tensors.
        self.batch = 1 if self.group else batch
        self.rows_q, self.rows_k = (int(self.starts[side][-1]) for side in (0, 1)) if self.group else (sq, sk)

    def __iter__(self):
        """(batch index, rows of Q, rows of K) of each sequence."""
        for i in range(self.count):
            if self.group:
                yield 0, slice(*self.starts[0][i:i + 2]), slice(*self.starts[1][i:i + 2])
            else:
                yield i, slice(None), slice(None)

    def grid(self, heads, tiles, heads_first=False):
        return (heads, self.count, tiles) if heads_first else (tiles, heads, self.count)

    def batch_stride(self, tensor):
        return 0 if self.group else tensor.batch
