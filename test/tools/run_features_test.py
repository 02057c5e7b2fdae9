"""`flydsl-aot run` with every feature of the attention operators, on inputs whose results follow by hand: Q = 0 makes all weights
equal, so a row is the mean of the values that it sees and its LSE the logarithm of their number."""
import array
import math
import struct
import unittest

from tool import ToolTest, read_npy, write_npy

D = 64


def halves(values):
    """Rows of D equal fp16 numbers."""
    return b"".join(struct.pack("<e", value) * D for value in values)


class RunFeaturesTest(ToolTest):
    def file(self, name, descr, shape, data=None):
        return write_npy(self.folder / f"{name}.npy", descr, shape, data)

    def sequences(self, q_shape, k_shape, values, descr="<f2"):
        """--in of q = 0, k = 0 and v whose rows are `values`."""
        v = halves(values) if descr == "<f2" else bytes(value for value in values for _ in range(D))
        files = {"q": self.file("q", "<f2", (*q_shape, D)), "k": self.file("k", descr, (*k_shape, D)),
                 "v": self.file("v", descr, (*k_shape, D), v)}
        return [f"--in={name}={file}" for name, file in files.items()]

    def attention(self, *arguments, op="attention_forward", lse=True, outputs=()):
        """One number for each row of out, the LSE, and the other outputs' bytes."""
        files = {name: self.folder / f"{name}.out.npy" for name in ("out", *(("lse",) if lse else ()), *outputs)}
        result = self.tool("run", op, "--device=emulator", "--repeat=0", *arguments,
                           *(f"--out={name}={file}" for name, file in files.items()))
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        self.text = result.stdout
        data = {name: read_npy(file)[2] for name, file in files.items()}
        out = [struct.unpack_from(f"<{D}e", data["out"], at) for at in range(0, len(data["out"]), 2 * D)]
        for row in out:
            self.assertEqual(len(set(row)), 1, row)
        return [row[0] for row in out], array.array("f", data.get("lse", b"")).tolist(), *(data[name] for name in outputs)

    def check(self, got, want, bound=2e-3):
        self.assertEqual(len(got), len(want))
        for g, w in zip(got, want):
            self.assertTrue(g == w or abs(g - w) <= bound * max(1, abs(w)), (got, want))

    def test_packed_sequences(self):
        # Lengths 1 and 2 of q, 2 and 3 of k; the starts once as a list and once as a file.
        starts = self.file("starts", "<i4", (3,), struct.pack("<3i", 0, 2, 5))
        out, lse = self.attention(*self.sequences((1, 3), (1, 5), [1, 3, 10, 20, 60]), "--set=cu_seqlens_q=0,1,3",
                                  f"--in=cu_seqlens_k={starts}")
        self.check(out, [2, 30, 30])
        self.check(lse, [math.log(2), math.log(3), math.log(3)])
        # The same tokens with the axis of heads after them, and only one key of the second sequence in use.
        out, _ = self.attention(*self.sequences((3, 1), (5, 1), [1, 3, 10, 20, 60]), "--set=layout=bshd", "--set=cu_seqlens_q=0,1,3",
                                "--set=cu_seqlens_k=0,2,5", "--set=seqused_k=2,1", "--set=seqused_q=1,2")
        self.check(out, [2, 10, 10])

    def test_more_sequences_than_are_counted(self):
        # Every third one has no keys, every fifth one no query.
        count = 4200
        rows, keys = ([int(b % n > 0) for b in range(count)] for n in (5, 3))
        starts = {side: self.file(f"starts_{side}", "<i4", (count + 1,), struct.pack(f"<{count + 1}i", *(sum(lengths[:b]) for b in range(count + 1))))
                  for side, lengths in (("q", rows), ("k", keys))}
        values = [b % 2000 for b in range(count) if keys[b]]
        out, lse = self.attention(*self.sequences((1, sum(rows)), (1, sum(keys)), values), *(f"--in=cu_seqlens_{s}={f}" for s, f in starts.items()))
        self.assertEqual(out, [b % 2000 if keys[b] else 0 for b in range(count) if rows[b]])
        self.assertEqual(lse, [0 if keys[b] else -math.inf for b in range(count) if rows[b]])

    def test_paged_keys(self):
        # Blocks of two keys; the first sequence's are 2 and 0, three keys in all.
        table = self.file("table", "<i4", (2, 2), struct.pack("<4i", 2, 0, 1, 1))
        pool = self.sequences((2, 1, 1), (3, 1, 2), [6, 7, 100, 8, 3, 30])
        out, lse = self.attention(*pool, f"--in=block_table={table}", "--set=seqused_k=3,1")
        self.check(out, [13, 100])
        self.check(lse, [math.log(3), 0])

    def test_decode(self):
        table = self.file("table", "<i4", (2, 2), struct.pack("<4i", 2, 0, 1, 1))
        pool = self.sequences((2, 1, 1), (3, 1, 2), [6, 7, 100, 8, 3, 30])
        sinks = self.file("sinks", "<f4", (1,), struct.pack("<f", 0))
        slopes = self.file("slopes", "<f4", (1,), struct.pack("<f", math.log(2)))
        out, lse = self.attention(*pool, f"--in=block_table={table}", "--set=seqused_k=3,1", f"--in=sinks={sinks}", "--set=softcap=5",
                                  f"--in=alibi_slopes={slopes}", op="attention_decode")
        self.check(out, [(3 / 4 + 30 / 2 + 6) / 2.75, 50])  # weights 1/4, 1/2 and 1, and the sink's 1
        self.check(lse, [math.log(2.75), math.log(2)])

    def test_values_that_are_part_of_the_keys(self):
        q = self.file("q", "<f2", (1, 16, 1, 576))
        k = self.file("k", "<f2", (1, 1, 3, 576), b"".join(struct.pack("<e", value) * 512 + struct.pack("<e", 1000) * 64 for value in (6, 7, 20)))
        result = self.attention(f"--in=q={q}", f"--in=k={k}", "--set=v_in_k=512", op="attention_decode", lse=False)[0]
        self.check(result, [11] * (16 * 512 // D))
        explained = self.tool("explain", "attention_decode", "--set=q=1x16x1x576", "--set=k=1x1x300x576", "--set=v_in_k=512")
        self.assertEqual((explained.returncode, explained.stderr), (0, ""))
        self.assertIn("taken     attention_decode_bf16_d576x512_shared_m16n32", explained.stdout)

    def test_scores(self):
        keys = self.sequences((1, 2, 1), (1, 1, 4), [1, 3, 5, 7])
        hides = self.file("bias", "<f4", (1, 1, 1, 4), struct.pack("<4f", -math.inf, 0, math.log(3), -math.inf))
        self.check(self.attention(*keys, f"--in=bias={hides}")[0], [4.5, 4.5])
        half = self.file("bias", "<u2", (1, 2, 1, 4), struct.pack("<8e", 0, 0, 0, -math.inf, -math.inf, 0, 0, 0))
        self.check(self.attention(*keys, f"--in=bias={half}", "--set=bias_dtype=fp16")[0], [3, 5])
        # From 2.358e38 on a bias and a sink count as infinite.
        least = self.file("bias", "<f4", (1, 1, 1, 4), struct.pack("<4f", -3.4e38, -3.4e38, -3.4e38, -2.3e38))
        out, lse = self.attention(*keys, f"--in=bias={least}")
        self.check((*out, *lse), [7, 7, -2.3e38, -2.3e38])
        least = self.file("bias", "<f4", (1, 1, 1, 1), struct.pack("<f", -3.4e38))
        self.assertEqual(self.attention(*keys, f"--in=bias={least}"), ([0, 0], [-math.inf] * 2))
        sinks = self.file("sinks", "<f4", (2,), struct.pack("<2f", 2.3e38, -3.4e38))
        out, lse = self.attention(*keys, f"--in=sinks={sinks}")
        self.check((*out, *lse), [0, 4, 2.3e38, math.log(4)])
        sees = self.file("visible", "|b1", (1, 2, 1, 4), bytes([0, 1, 0, 0, 1, 0, 0, 1]))
        self.check(self.attention(*keys, f"--in=visible={sees}")[0], [3, 4])
        sinks = self.file("sinks", "<f4", (2,), struct.pack("<2f", 0, math.log(4)))
        out, lse = self.attention(*keys, f"--in=sinks={sinks}")
        self.check(out, [16 / 5, 2])
        self.check(lse, [math.log(5), math.log(8)])
        # The query sits at the last key, so that distances are 3, 2, 1, 0.
        slopes = self.file("slopes", "<f4", (2,), struct.pack("<2f", math.log(2), 100))
        out, lse = self.attention(*keys, f"--in=alibi_slopes={slopes}")
        self.check(out, [(1 / 8 + 3 / 4 + 5 / 2 + 7) / 1.875, 7])
        self.check(lse, [math.log(1.875), 0])
        # A score of 1 under a cap of 2.
        first = struct.pack("<e", 4) + bytes(2 * (D - 1)), struct.pack("<e", 2) + bytes(2 * (D - 1))
        q, k = (self.file(name, "<f2", (1, 1, 1, D), data) for name, data in zip("qk", first))
        v = self.file("v", "<f2", (1, 1, 1, D), halves([3]))
        _, lse = self.attention(f"--in=q={q}", f"--in=k={k}", f"--in=v={v}", "--set=softcap=2", "--set=scale=0.125")
        self.check(lse, [2 * math.tanh(0.5)], 1e-5)

    def test_dropout(self):
        values = [float(j) for j in range(32)]
        keys = self.sequences((1, 1, 2), (1, 1, 32), values)
        seed = self.file("seed", "<i8", (1,), struct.pack("<q", 1234567890123))
        names = ("kept", "dropout_seed_out", "dropout_offset_out")
        out, lse, kept, used_seed, used_offset = self.attention(
            *keys, "--set=dropout_p=0.25", f"--in=dropout_seed={seed}", "--set=dropout_offset=5", outputs=names)
        self.assertEqual((struct.unpack("<q", used_seed)[0], struct.unpack("<q", used_offset)[0]), (1234567890123, 5))
        self.check(lse, [math.log(32)] * 2)
        rows = [kept[:32], kept[32:]]
        self.assertNotEqual(*rows)
        self.check(out, [sum(v for v, bit in zip(values, row) if bit) / 32 / 0.75 for row in rows])
        again, _, same = self.attention(*keys, "--set=dropout_p=0.25", "--set=dropout_seed=1234567890123", "--set=dropout_offset=5",
                                        outputs=("kept",))
        self.assertEqual((again, same), (out, kept))

    def test_8_bits(self):
        # 1, 2 and 3 in e4m3 and in e5m2.
        for dtype, codes in (("e4m3", (0x38, 0x40, 0x44)), ("e5m2", (0x3c, 0x40, 0x42))):
            factor = self.file("factor", "<f4", (1,), struct.pack("<f", 2.5))
            keys = self.sequences((1, 1, 1), (1, 1, 3), codes, "|u1")
            self.check(self.attention(*keys, f"--set=kv_dtype={dtype}", f"--in=v_descale={factor}")[0], [5])
        q = self.file("q", "|u1", (1, 1, 1, D))
        self.check(self.attention(f"--in=q={q}", *keys[1:], "--set=dtype=e5m2", "--set=out_dtype=fp16")[0], [2])

    SHAPES = ("--set=q=4x40x64", "--set=cu_seqlens_q=0,30,40", "--set=k=12x2x16x64", "--set=v=12x2x16x64", "--set=kv_dtype=e4m3",
              "--set=block_table=2x8", "--set=seqused_k=100,33", "--set=causal=bottom-right", "--set=bias=1x4x1x110",
              "--set=visible=2x1x1x110", "--set=alibi_slopes=2x4", "--set=sinks=4", "--set=softcap=20", "--set=dropout_p=0.1",
              "--set=dropout_seed=7", "--set=dropout_offset=3", "--set=k_descale=2", "--set=v_descale=2x2", "--set=max_seqlen_k=110")

    def test_inputs_by_their_shapes(self):
        outs = []
        for file in ("a.npy", "b.npy"):
            result = self.tool("run", "attention_forward", "--device=emulator", *self.SHAPES, f"--out=out={self.folder / file}")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("data       normal, seed 1", result.stdout)
            outs.append(read_npy(self.folder / file))
        self.assertEqual(outs[0], outs[1])
        self.assertEqual(outs[0][:2], ("<u2", (4, 40, 64)))
        for bits in array.array("H", outs[0][2]):
            self.assertLess(bits & 0x7fff, 0x7f80)  # neither NaN nor infinite
        explained = self.tool("explain", "attention_forward", *self.SHAPES)
        self.assertEqual((explained.returncode, explained.stderr), (0, ""))
        self.assertIn("taken     attention_forward_bf16_d64_general", explained.stdout)

    def test_refused(self):
        def refused(words, *arguments, status=2):
            self.expect_error(status, words, "explain", "attention_forward", *arguments)

        dense = ("--set=q=2x4x5x64", "--set=k=2x2x9x64", "--set=v=2x2x9x64")
        refused(["seqused_k=5,,1", "5,9,1"], *dense, "--set=seqused_k=5,,1")
        refused(["seqused_k=2x1", "5,9,1"], *dense, "--set=seqused_k=2x1")
        refused(["seqused_k=5,9999999999", "32-bit"], *dense, "--set=seqused_k=5,9999999999")
        refused(["INVALID_SHAPE", "seqused_k has 3 elements"], *dense, "--set=seqused_k=1,2,3")
        refused(["q has 4 axes", "packed"], *dense, "--set=cu_seqlens_q=0,1,2")
        refused(["block_table has 1 axes", "batch, block"], *dense, "--set=block_table=9", "--set=seqused_k=9,9")
        refused(["INVALID_ARGUMENT", "without seqused_k"], *dense, "--set=block_table=2x9")
        refused(["INVALID_ARGUMENT", "dropout_p"], *dense, "--set=dropout_p=1")
        refused(["INVALID_ARGUMENT", "softcap"], *dense, "--set=softcap=-1")
        refused(["INVALID_ARGUMENT", "k_descale", "bf16"], *dense, "--set=k_descale=1")
        refused(["INVALID_DTYPE", "bias"], *dense, "--set=bias=1x1x1x9", "--set=bias_dtype=fp16")
        refused(["not a 64-bit integer"], *dense, "--set=dropout_seed=1.5")
        refused(["INVALID_ARGUMENT", "max_seqlen_q"], *dense, "--set=max_seqlen_q=5")
        bits = self.file("bits", "|u1", (2, 2, 9, 64))
        refused(["uint8", "kv_dtype=e4m3"], dense[0], f"--in=k={bits}", f"--in=v={bits}")
        refused(["visible", "uint8", "bool"], *dense, f"--in=visible={bits}")


if __name__ == "__main__":
    unittest.main()
