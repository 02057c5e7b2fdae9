"""The binding itself: layout of structs, errors, element types, DLPack, queries, life of memory."""

import ctypes
import gc
import inspect
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import flydsl_aot
from flydsl_aot import _layout, dlpack, dtypes, native

SHAPE = flydsl_aot.shape


def attention(dtype="bf16", **more):
    """Fields of a forward call without memory."""
    operand = SHAPE((1, 2, 64, 64), dtype)
    return {"q": operand, "k": operand, "v": operand, "out": operand, "scale": 0.125, "mask.left": -1, "mask.right": -1, **more}


class Layout(unittest.TestCase):
    def test_packs_a_tensor_as_the_compiler_lays_it_out(self):
        size, fields = _layout.STRUCTS["tensor"]
        tensor = native.Tensor(0x1122334455667788, "bf16", (3, 5), (7, 11))
        packed = native.parameters("gemm", {"a": tensor}).raw[_layout.PARAMETERS["gemm"][1]["a"][1]:][:size]
        self.assertEqual(struct.unpack_from("<Q", packed, fields["data"][1])[0], tensor.pointer)
        self.assertEqual(struct.unpack_from("<ii", packed, fields["dtype"][1]), (_layout.DTYPES["bf16"], 2))
        self.assertEqual(struct.unpack_from("<3q", packed, fields["sizes"][1]), (3, 5, 0))
        self.assertEqual(struct.unpack_from("<3q", packed, fields["strides"][1]), (7, 11, 0))
        self.assertEqual(fields["rank"][1], fields["dtype"][1] + 4)

    def test_has_the_library_s_names_and_sizes(self):
        library = native.library()
        library.flydsl_aot_dtype_bytes.restype = ctypes.c_uint32
        for name, number in _layout.DTYPES.items():
            self.assertEqual(library.flydsl_aot_dtype_name(number).decode(), name)
            self.assertEqual(library.flydsl_aot_dtype_bytes(number), native.dtype_bytes(name))
        known = [n for n in range(64) if library.flydsl_aot_dtype_name(n) != b"invalid"]
        self.assertEqual(known, sorted(_layout.DTYPES.values()))

    def test_every_operator_has_a_documented_method(self):
        for operator in _layout.PARAMETERS:
            method = getattr(flydsl_aot.Handle, operator)
            self.assertTrue(inspect.getdoc(method), operator)
            self.assertNotIn(inspect.Parameter.empty, [p.annotation for p in list(inspect.signature(method).parameters.values())[1:]])
            self.assertIsNot(inspect.signature(method).return_annotation, inspect.Signature.empty)

    def test_names_an_unknown_field_and_a_number_out_of_range(self):
        with self.assertRaisesRegex(TypeError, "gemm has no field 'q'; it has alpha"):
            native.parameters("gemm", {"q": 1})
        with self.assertRaisesRegex(ValueError, "topk: axis = 4294967296"):
            native.parameters("topk", {"axis": 1 << 32})


class Errors(unittest.TestCase):
    def test_each_family_is_a_class(self):
        cases = [
            (flydsl_aot.InvalidArgument, "INVALID_ARGUMENT", dict(device="none")),
            (flydsl_aot.Unsupported, "UNSUPPORTED_ARCH", dict(device="emulator", arch="gfx90a")),
            (flydsl_aot.ArchiveError, "ARCHIVE_NOT_FOUND", dict(device="none", arch="gfx950", archive_path="/nonexistent")),
            (flydsl_aot.DeviceError, "DEVICE_LIBRARY_NOT_FOUND", dict(device="hip", device_library="/nonexistent.so")),
        ]
        for kind, name, options in cases:
            with self.assertRaises(kind) as caught:
                flydsl_aot.open(**options)
            self.assertEqual(caught.exception.name, name)
            self.assertIsInstance(caught.exception, flydsl_aot.Error)
            self.assertIn(name, str(caught.exception))
            self.assertGreater(len(str(caught.exception)), len(name) + 2)

    def test_a_damaged_archive_is_an_archive_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "flydsl_aot.gfx950.fda"
            path.write_bytes(b"not an archive" * 100)
            with self.assertRaises(flydsl_aot.ArchiveError):
                flydsl_aot.open(device="none", arch="gfx950", archive_path=str(path))

    def test_bad_names_list_what_there_is(self):
        with self.assertRaisesRegex(ValueError, "device is 'cuda'; it may be 'default', 'hip'"):
            flydsl_aot.open(device="cuda")
        with self.assertRaisesRegex(ValueError, "dtype is 'float'; it may be"):
            SHAPE((1,), "float")


class Queries(unittest.TestCase):
    """Without a device."""

    @classmethod
    def setUpClass(cls):
        cls.handle = flydsl_aot.open(device="none", arch="gfx950")

    def test_says_what_would_run(self):
        answer = self.handle.query_fields("attention_forward", attention())
        self.assertEqual((answer.status, answer.name, answer.backend), (0, "OK", "native"))
        self.assertRegex(answer.kernel, "^attention_forward_bf16_d64_")

    def test_says_why_not(self):
        answer = self.handle.query_fields("attention_forward", attention("fp32"))
        self.assertEqual(answer.name, "UNSUPPORTED_DTYPE")
        self.assertIn("fp32", answer.reason)

    def test_may_compile_what_the_archive_lacks(self):
        operand = SHAPE((1, 1, 4, 640), "bf16")
        fields = {**attention(), "q": operand, "k": operand, "v": operand, "out": operand}
        answers = {jit: flydsl_aot.open(device="none", arch="gfx950", jit=jit).query_fields("attention_forward", fields).name for jit in ("on", "off")}
        self.assertEqual(answers["off"], "UNSUPPORTED_HEAD_DIM")
        self.assertIn(answers["on"], ("OK", "COMPILER_NOT_FOUND"))

    def test_explains_every_candidate(self):
        candidates = self.handle.explain("attention_forward", attention())
        self.assertEqual([c.taken for c in candidates].count(True), 1)
        self.assertEqual(candidates[[c.taken for c in candidates].index(True)].kernel,
                         self.handle.query_fields("attention_forward", attention()).kernel)
        self.assertTrue(all(c.reason and c.problem for c in candidates))

    def test_needs_no_device_runtime(self):
        script = ("import flydsl_aot\n"
                  "h = flydsl_aot.open(device='none', arch='gfx950')\n"
                  "s = flydsl_aot.shape\n"
                  "print(h.query('rms_norm', x=s((4, 64), 'fp32'), out=s((4, 64), 'fp32')).kernel)\n"
                  "maps = open('/proc/self/maps').read()\n"
                  "assert 'libamdhip' not in maps and 'libflydsl_emu' not in maps and 'LLVM' not in maps, maps\n")
        environment = {key: value for key, value in os.environ.items() if key in ("PYTHONPATH", "FLYDSL_AOT_LIBRARY")}
        result = subprocess.run([sys.executable, "-B", "-c", script], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, "^rms_norm_")

    def test_a_call_says_that_there_is_no_device(self):
        with self.assertRaises(flydsl_aot.DeviceError) as caught:
            self.handle.launch("topk", {"x": native.Tensor(16, "fp32", (1,), (1,)), "values": native.Tensor(32, "fp32", (1,), (1,)),
                                        "indices": native.Tensor(64, "int64", (1,), (1,))})
        self.assertEqual(caught.exception.name, "NO_DEVICE")


class ElementTypes(unittest.TestCase):
    def test_every_code_survives(self):
        for name in ("e4m3", "e5m2", "e8m0"):
            codes = np.arange(256, dtype=np.uint8)
            values = dtypes.decode(codes, name)
            numbers = ~np.isnan(values)
            np.testing.assert_array_equal(dtypes.encode(values, name)[numbers], codes[numbers], name)
            self.assertTrue(np.isnan(dtypes.decode(dtypes.encode(values, name), name)[~numbers]).all(), name)
        codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
        np.testing.assert_array_equal(dtypes.encode(dtypes.decode(codes, "e2m1x2"), "e2m1x2"), codes)
        codes = np.arange(65536, dtype=np.uint16)
        values = dtypes.decode(codes, "bf16")
        numbers = ~np.isnan(values)
        np.testing.assert_array_equal(dtypes.encode(values, "bf16")[numbers], codes[numbers])

    def test_largest_numbers(self):
        # OCP 8-bit Floating Point Specification 1.0, tables 1 and 2; OCP Microscaling Formats 1.0, 5.3.
        for name, code, value in (("e4m3", 0x7E, 448), ("e4m3", 0x01, 2**-9), ("e5m2", 0x7B, 57344), ("e5m2", 0x01, 2**-16),
                                  ("e8m0", 0x00, 2.0**-127), ("e8m0", 0xFE, 2.0**127)):
            self.assertEqual(dtypes.decode(np.array([code], np.uint8), name)[0], value, name)
        np.testing.assert_array_equal(dtypes.decode(np.array([0x21, 0x43, 0x65, 0xF7], np.uint8), "e2m1x2"),
                                      [0.5, 1, 1.5, 2, 3, 4, 6, -6])

    def test_rounds_to_nearest_even_and_saturates(self):
        np.testing.assert_array_equal(dtypes.decode(dtypes.encode(np.array([17, 19, 1e6, -1e6, -0.0], np.float32), "e4m3"), "e4m3"),
                                      [16, 20, 448, -448, 0])
        np.testing.assert_array_equal(dtypes.decode(dtypes.encode(np.array([2.5, 5, 100, -0.25], np.float32)[[0, 1, 2, 3]], "e2m1x2"),
                                                    "e2m1x2"), [2, 4, 6, 0])
        np.testing.assert_array_equal(dtypes.encode(np.array([1 + 2**-8, 1 + 3 * 2**-8, np.inf], np.float32), "bf16"),
                                      [0x3F80, 0x3F82, 0x7F80])


class DeviceMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.handle = flydsl_aot.open()
        assert cls.handle.info().device == "emulator"

    def test_arrays_come_back(self):
        rng = np.random.default_rng(1)
        for dtype in ("fp32", "fp16", "int32", "int64", "bool"):
            array = (rng.standard_normal((3, 4, 5)) * 3).astype(dtypes.NATIVE[dtype])
            back = self.handle.upload(array)
            self.assertEqual(back.dtype, dtype)
            np.testing.assert_array_equal(back.numpy(), array)
            np.testing.assert_array_equal(back.permute(2, 0, 1).numpy(), array.transpose(2, 0, 1))
        array = rng.standard_normal((4, 6)).astype(np.float32)
        for dtype in ("bf16", "e4m3", "e5m2", "e2m1x2"):
            on_device = self.handle.upload(array, dtype)
            self.assertEqual(on_device.sizes, (4, 6))
            expected = dtypes.decode(dtypes.encode(array, dtype), dtype)
            np.testing.assert_array_equal(on_device.numpy(), expected)
            np.testing.assert_array_equal(on_device.T.numpy(), expected.T)
            np.testing.assert_array_equal(self.handle.upload(on_device.bits(), dtype).numpy(), expected)
        self.assertEqual(self.handle.upload(np.empty((0, 3), np.float32)).numpy().shape, (0, 3))
        self.assertEqual(self.handle.upload(np.float32(3)).numpy(), 3)

    def test_dlpack_shares_memory(self):
        array = np.arange(12, dtype=np.float32).reshape(3, 4)
        on_device = self.handle.upload(array)
        shared = np.from_dlpack(on_device.T)
        np.testing.assert_array_equal(shared, array.T)
        self.assertEqual(shared.ctypes.data, on_device.pointer)
        del on_device
        gc.collect()
        np.testing.assert_array_equal(shared, array.T)  # the memory lives as long as its last user
        del shared
        gc.collect()
        self.assertEqual(len(dlpack._exported), 0)
        on_device = self.handle.upload(array)
        capsule = on_device.__dlpack__()
        del capsule  # never taken
        self.assertEqual(len(dlpack._exported), 0)

    def test_dlpack_host_arrays_are_copied(self):
        class Producer:  # an array package that only speaks DLPack
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        array = np.arange(24, dtype=np.float32).reshape(4, 6)
        result = self.handle.topk(Producer(array[:, ::2]), 2)
        np.testing.assert_array_equal(result.values.numpy(), array[:, [4, 2]])

    def test_close_frees_what_is_left(self):
        handle = flydsl_aot.open()
        array = handle.upload(np.ones(8, np.float32))
        handle.close()
        handle.close()
        self.assertTrue(handle.closed)
        del array
        gc.collect()

    def test_a_workspace_is_made_where_one_is_needed(self):
        q = self.handle.upload(np.random.default_rng(2).standard_normal((1, 1, 1, 64)), "bf16")
        keys = self.handle.upload(np.random.default_rng(3).standard_normal((1, 1, 64, 64)), "bf16")
        fields = {"q": q, "k": keys, "v": keys, "out": q, "scale": 0.125, "mask.left": -1, "mask.right": -1}
        self.assertGreater(self.handle.query_fields("attention_decode", fields).workspace_bytes, 0)
        before = len(self.handle.memories)
        self.handle.attention_decode(q, keys, keys)
        gc.collect()
        self.assertEqual(len(self.handle.memories), before)

    def test_fields_pointers_and_a_workspace_of_the_caller_s(self):
        rng = np.random.default_rng(4)
        pool = self.handle.upload(rng.standard_normal((6, 2, 16, 64)), "bf16")
        q, out = self.handle.upload(rng.standard_normal((2, 4, 1, 64)), "bf16"), self.handle.empty((2, 4, 1, 64), "bf16")
        lengths, table = self.handle.upload(np.array([40, 17], np.int32)), self.handle.upload(np.array([[5, 0, 2], [1, 4, 0]], np.int32))
        fields = {name: flydsl_aot.Tensor(array.pointer, array.dtype, array.sizes, array.strides)
                  for name, array in dict(q=q, k=pool, v=pool, out=out, seqused_k=lengths, block_table=table).items()}
        fields.update({"scale": 64**-0.5, "mask.left": -1, "mask.right": -1})
        plan = self.handle.query_fields("attention_decode", fields)
        self.assertEqual(plan.reason, "")
        self.handle.prefetch("attention_decode", fields)
        right = self.handle.attention_decode(q, pool, pool, seqused_k=lengths, block_table=table).out.bits()
        workspace = self.handle.empty((plan.workspace_bytes,), "bool")
        self.handle.launch("attention_decode", {**fields, "workspace": workspace.pointer, "workspace_bytes": plan.workspace_bytes})
        np.testing.assert_array_equal(out.bits(), right)
        asked = []
        self.handle.launch("attention_decode", fields, allocate=lambda size: asked.append(size) or (workspace.pointer, workspace))
        self.assertEqual(asked, [plan.workspace_bytes])
        with self.assertRaises(flydsl_aot.InvalidArgument) as caught:
            self.handle.launch("attention_decode", {**fields, "workspace": workspace.pointer, "workspace_bytes": plan.workspace_bytes - 1})
        self.assertEqual(caught.exception.name, "INVALID_WORKSPACE")


if __name__ == "__main__":
    unittest.main()
