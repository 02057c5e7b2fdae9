"""libflydsl_aot.so on an NVIDIA GPU by ctypes, on PyTorch's tensors and streams (src/device/cuda)."""

import ctypes
import os

import torch

DTYPES = {torch.float32: 2, torch.float16: 3, torch.bfloat16: 4, torch.int32: 20, torch.int64: 21}
MAX_RANK = 8
HIP = 1  # flydsl_aot_device_kind


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
    ]

    @classmethod
    def of(cls, tensor):
        view = cls(tensor.data_ptr(), DTYPES[tensor.dtype], tensor.dim())
        view.sizes[: tensor.dim()] = tensor.shape
        view.strides[: tensor.dim()] = tensor.stride()
        return view


class OpenOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("device", ctypes.c_int32),
        ("device_library", ctypes.c_char_p),
        ("arch", ctypes.c_char_p),
        ("archive_path", ctypes.c_char_p),
    ]


class QueryResult(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("status", ctypes.c_int32),
        ("workspace_bytes", ctypes.c_uint64),
        ("kernel", ctypes.c_char * 128),
        ("backend", ctypes.c_char * 32),
        ("reason", ctypes.c_char * 256),
    ]


class RmsNormParams(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("eps", ctypes.c_float),
        ("x", Tensor),
        ("weight", Tensor),
        ("weight_offset", ctypes.c_float),
        ("reserved", ctypes.c_uint32),
        ("residual", Tensor),
        ("sum", Tensor),
        ("out", Tensor),
        ("out_scale", Tensor),
        ("rstd", Tensor),
    ]


class LayerNormParams(ctypes.Structure):
    _fields_ = [*RmsNormParams._fields_, ("mean", Tensor), ("bias", Tensor)]


class RmsNormBackwardParams(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("weight_offset", ctypes.c_float),
        ("x", Tensor),
        ("weight", Tensor),
        ("rstd", Tensor),
        ("dout", Tensor),
        ("dsum", Tensor),
        ("dx", Tensor),
        ("dweight", Tensor),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64),
    ]


class LayerNormBackwardParams(ctypes.Structure):
    _fields_ = [*RmsNormBackwardParams._fields_, ("mean", Tensor), ("dbias", Tensor)]


class TopkParams(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("axis", ctypes.c_int32),
        ("x", Tensor),
        ("values", Tensor),
        ("indices", Tensor),
        ("smallest", ctypes.c_uint32),
        ("any_order", ctypes.c_uint32),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64),
    ]


class TopkSoftmaxParams(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("chosen_only", ctypes.c_uint32),
        ("x", Tensor),
        ("weights", Tensor),
        ("indices", Tensor),
    ]


class Library:
    def __init__(self, folder):
        self.library = ctypes.CDLL(os.path.join(folder, "libflydsl_aot.so.0"))
        self.library.flydsl_aot_last_error.restype = ctypes.c_char_p
        options = OpenOptions(device=HIP, device_library=os.path.join(folder, "libflydsl_aot_cuda.so").encode())
        options.struct_size = ctypes.sizeof(OpenOptions)
        self.handle = ctypes.c_void_p()
        self.check(self.library.flydsl_aot_open(ctypes.byref(options), ctypes.byref(self.handle)))

    def check(self, status):
        if status:
            raise RuntimeError(self.library.flydsl_aot_last_error().decode())

    def call(self, operator, params):
        """A function without arguments that launches on PyTorch's current stream, and the kernel's name."""
        params.struct_size = ctypes.sizeof(params)
        result = QueryResult(struct_size=ctypes.sizeof(QueryResult))
        self.check(getattr(self.library, f"flydsl_aot_{operator}_query")(self.handle, ctypes.byref(params), ctypes.byref(result)))
        workspace = None
        if result.workspace_bytes:
            workspace = torch.empty(result.workspace_bytes, dtype=torch.uint8, device="cuda")
            params.workspace = workspace.data_ptr()
            params.workspace_bytes = result.workspace_bytes
        function, reference = getattr(self.library, f"flydsl_aot_{operator}"), ctypes.byref(params)

        def launch(keep=workspace):
            self.check(function(self.handle, reference, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))

        return launch, result.kernel.decode()

    def rms_norm(self, x, weight, out, eps):
        return self.call("rms_norm", RmsNormParams(
            eps=eps, x=Tensor.of(x), weight=Tensor.of(weight), out=Tensor.of(out)))

    def topk(self, x, values, indices):
        return self.call("topk", TopkParams(
            axis=-1, x=Tensor.of(x), values=Tensor.of(values), indices=Tensor.of(indices)))

    def topk_softmax(self, x, weights, indices, chosen_only):
        return self.call("topk_softmax", TopkSoftmaxParams(
            chosen_only=int(chosen_only), x=Tensor.of(x), weights=Tensor.of(weights), indices=Tensor.of(indices)))
