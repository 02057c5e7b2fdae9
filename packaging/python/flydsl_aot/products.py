"""Matrix products: gemm, grouped_gemm, scaled_gemm, and mx_quantise, which makes operands of the latter two."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from . import _layout, arrays, native
from .core import Core


class GemmResult(NamedTuple):
    """d (M, N) or (batch, M, N); aux, what entered the activation, or None; sums by the names that were asked for."""

    d: arrays.DeviceArray
    aux: Optional[arrays.DeviceArray]
    sums: Dict[str, arrays.DeviceArray]


class Quantised(NamedTuple):
    """8-bit or 4-bit elements and the E8M0 scale of each 32 neighbours."""

    out: arrays.DeviceArray
    scale: arrays.DeviceArray


def _product_sizes(a: arrays.DeviceArray, b: arrays.DeviceArray) -> Tuple[int, ...]:
    batches = [operand.sizes[0] for operand in (a, b) if len(operand.sizes) == 3]
    batch = [max(batches) if 0 not in batches else 0] if batches else []
    return (*batch, a.sizes[-2], b.sizes[-1])


def _sixteen_bits(dtype: str, wanted: Optional[str]) -> str:
    return wanted or (dtype if dtype in ("fp32", "fp16", "bf16") else "bf16")


class ProductOperators(Core):
    """The product operators of a Handle. Operands are DeviceArrays, NumPy arrays (copied to the device) or DLPack producers; sizes are
    the mathematical ones, a transposed operand is `array.T`."""

    def gemm(self, a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 0.0, bias_n: Any = None, bias_m: Any = None,
             activation: str = "none", residual: Any = None, aux: Union[bool, Any] = False, z: Any = None,
             sums: Sequence[str] = (), a_descale: Any = None, b_descale: Any = None, d_scale: Any = None, out: Any = None,
             out_dtype: Optional[str] = None, stream: int = 0) -> GemmResult:
        """d = activation(alpha a_descale b_descale a b + beta c + bias) + residual.

        With z, the forward call's aux, the way back through a layer: d = activation'(z) (alpha a b + ...) + residual. sums: any of
        "d_sum_m", "d_sum_n", "a_sum_m", "b_sum_n", gradients of biases: fp32 sums of a matrix over its other axis and the batch.

        a (M, K) or (batch, M, K), b (K, N) or (batch, K, N): fp32, fp16, bf16, e4m3 or e5m2; c, residual of d's sizes; bias_n (N) or
        (batch, N), bias_m (M) or (batch, M). activation: "none", "relu", "gelu" (erf), "gelu_tanh", "silu". descales: fp32, one number
        or one a row of a, column of b. out: written where given, else made in `out_dtype`, a's by default (bf16 for 8-bit a).
        Raises Unsupported, InvalidArgument, DeviceError, ArchiveError."""
        given = self.operands(a=a, b=b, c=c, a_descale=a_descale, b_descale=b_descale, d_scale=d_scale)
        epilogue = self.operands(bias_n=bias_n, bias_m=bias_m, residual=residual)
        sizes = _product_sizes(given["a"], given["b"])
        if out is None:
            out = self.empty(sizes, _sixteen_bits(given["a"].dtype, out_dtype))
        if aux is True:
            aux = self.empty(sizes, _sixteen_bits(given["a"].dtype, None))
        aux = None if aux is False else aux
        if z is not None and aux is not None:
            raise ValueError("z and aux are both given; aux is what a forward call writes")
        lengths = {"d_sum_m": sizes[-2], "d_sum_n": sizes[-1], "a_sum_m": sizes[-2], "b_sum_n": sizes[-1]}
        summed = {name: self.empty((native.lookup(lengths, name, "sums"),), "fp32") for name in sums}
        self.launch("gemm", {
            **given, **{f"epilogue.{name}": value for name, value in epilogue.items()}, **summed, "d": out,
            "epilogue.aux": aux if z is None else arrays.to_device(self, z), "epilogue.gradient": int(z is not None), "alpha": alpha,
            "beta": beta, "epilogue.activation": native.lookup(_layout.ACTIVATIONS, activation, "activation")}, stream)
        return GemmResult(out, aux, summed)

    def grouped_gemm(self, a: Any, b: Any, offsets: Any = None, bias: Any = None, *, a_scale: Any = None, b_scale: Any = None,
                     scale_layout: str = "plain", out: Any = None, out_dtype: Optional[str] = None,
                     stream: int = 0) -> arrays.DeviceArray:
        """Products of groups that share one axis, cut at offsets (G, int32 or int64, ends of groups).

        a (M, K) and b (G, K, N): groups of rows; a (G, M, K) and b (K, N): of columns; both of rank 2: along K, d (G, M, N); both of
        rank 3: none, without offsets. bf16 or fp16; e4m3 or e5m2 with a_scale and b_scale (MXFP8). bias (N) or (G, N). Rows and
        columns of no group keep what `out` has: of one made here, 0. Raises as gemm."""
        given = self.operands(a=a, b=b, offsets=offsets, bias=bias, a_scale=a_scale, b_scale=b_scale)
        left, right = given["a"], given["b"]
        if out is None:
            sizes: Tuple[int, ...] = (left.sizes[-2], right.sizes[-1])
            if len(left.sizes) == len(right.sizes):
                groups = left.sizes[0] if len(left.sizes) == 3 else given["offsets"].sizes[0] if offsets is not None else 0
                sizes = (groups, *sizes)
            out = arrays.zeros(self, sizes, _sixteen_bits(left.dtype, out_dtype))
        layout = native.lookup(_layout.SCALE_LAYOUTS, scale_layout, "scale_layout")
        self.launch("grouped_gemm", {**given, "d": out, "scale_layout": layout}, stream)
        return out

    def scaled_gemm(self, a: Any, a_scale: Any, b: Any, b_scale: Any, bias: Any = None, *, scale_layout: str = "plain",
                    out: Any = None, out_dtype: str = "bf16", stream: int = 0) -> arrays.DeviceArray:
        """d = a b + bias with a power of two as the scale of each 32 neighbours along K (OCP MX).

        a (M, K), b (K, N), alone or batched: e4m3, e5m2, or both e2m1x2 packed along K (b is usually `array.T` of one stored (N, K)).
        a_scale (M, K / 32), b_scale (N, K / 32): e8m0, or as scale_layout "shuffled-32-8" has them. bias (N). K a multiple of 32.
        out_dtype: fp32, fp16 or bf16. Raises as gemm."""
        given = self.operands(a=a, a_scale=a_scale, b=b, b_scale=b_scale, bias=bias)
        if out is None:
            out = self.empty(_product_sizes(given["a"], given["b"]), out_dtype)
        layout = native.lookup(_layout.SCALE_LAYOUTS, scale_layout, "scale_layout")
        self.launch("scaled_gemm", {**given, "d": out, "scale_layout": layout}, stream)
        return out

    def mx_quantise(self, x: Any, dtype: str = "e4m3", *, scale_layout: str = "plain", rounding: str = "nearest-even", seed: int = 0,
                    offset: int = 0, stream: int = 0) -> Quantised:
        """x (M, K) or (batch, M, K), bf16, fp16 or fp32, K a multiple of 32, to OCP MX: `dtype` "e4m3", "e5m2" or "e2m1x2" with an
        E8M0 scale for each 32 neighbours. rounding: "nearest-even" or "stochastic" (Philox of `seed` and `offset`).
        Raises as gemm."""
        source = arrays.to_device(self, x)
        out = self.empty(source.sizes, dtype)
        rows, blocks = source.sizes[-2], source.sizes[-1] // 32
        layout = native.lookup(_layout.SCALE_LAYOUTS, scale_layout, "scale_layout")
        if scale_layout == "shuffled-32-8":
            rows, blocks = -(-rows // 32) * 32, -(-blocks // 8) * 8
        scale = self.empty((*source.sizes[:-2], rows, blocks), "e8m0")
        self.launch("mx_quantise", {"x": source, "out": out, "scale": scale, "scale_layout": layout, "seed": seed, "offset": offset,
                                    "rounding": native.lookup(_layout.ROUNDINGS, rounding, "rounding")}, stream)
        return Quantised(out, scale)
