"""Operators on rows: rms_norm, layer_norm and their gradients, topk, topk_softmax."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Union

from . import arrays
from .core import Core

RMS_NORM_EPS = 1.1920929e-07  # PyTorch's where none is given
LAYER_NORM_EPS = 1e-5


class NormResult(NamedTuple):
    """out as x; per row rstd (and, of layer_norm, mean) fp32; sum, x + residual; out_scale of an 8-bit out. None where not wanted."""

    out: arrays.DeviceArray
    rstd: Optional[arrays.DeviceArray]
    mean: Optional[arrays.DeviceArray]
    sum: Optional[arrays.DeviceArray]
    out_scale: Optional[arrays.DeviceArray]


class NormGradients(NamedTuple):
    """dx as x; dweight and dbias (N); None where not wanted."""

    dx: Optional[arrays.DeviceArray]
    dweight: Optional[arrays.DeviceArray]
    dbias: Optional[arrays.DeviceArray]


class TopK(NamedTuple):
    """The elements chosen (or their softmax weights), the best first, and where they are."""

    values: arrays.DeviceArray
    indices: arrays.DeviceArray


class RowOperators(Core):
    """The row operators of a Handle. Operands are DeviceArrays, NumPy arrays (copied to the device) or DLPack producers."""

    def rms_norm(self, x: Any, weight: Any = None, *, eps: float = RMS_NORM_EPS, weight_offset: float = 0.0, residual: Any = None,
                 rstd: bool = False, out: Any = None, out_dtype: Optional[str] = None, scale_dtype: str = "fp32",
                 stream: int = 0) -> NormResult:
        """Root-mean-square norm of rows: x (M, N) or (M0, M1, N), fp32, fp16 or bf16; weight (N) of any of these. With residual (as x)
        x + residual is what is normalised, and returned as sum. out_dtype "e4m3" or "e5m2" quantises, with out_scale fp32 (one a row)
        or, scale_dtype "e8m0", one for each 32 elements. Raises Unsupported, InvalidArgument, DeviceError, ArchiveError."""
        given = self.operands(x=x, weight=weight, residual=residual)
        return self._norm("rms_norm", given, eps, weight_offset, rstd, out, out_dtype, scale_dtype, stream)

    def layer_norm(self, x: Any, weight: Any = None, bias: Any = None, *, eps: float = LAYER_NORM_EPS, weight_offset: float = 0.0,
                   residual: Any = None, rstd: bool = False, out: Any = None, out_dtype: Optional[str] = None,
                   scale_dtype: str = "fp32", stream: int = 0) -> NormResult:
        """Layer norm of rows; as rms_norm, with bias (N). `rstd` asks for rstd and mean."""
        given = self.operands(x=x, weight=weight, bias=bias, residual=residual)
        return self._norm("layer_norm", given, eps, weight_offset, rstd, out, out_dtype, scale_dtype, stream)

    def _norm(self, operator: str, given: Dict[str, Any], eps: float, weight_offset: float, rstd: bool, out: Any,
              out_dtype: Optional[str], scale_dtype: str, stream: int) -> NormResult:
        x = given["x"]
        rows = x.sizes[:-1]
        if out is None:
            out = self.empty(x.sizes, out_dtype or x.dtype)
        scale = None
        if out.dtype in ("e4m3", "e5m2"):
            scale = self.empty(rows if scale_dtype == "fp32" else (*rows, -(-x.sizes[-1] // 32)), scale_dtype)
        total = self.empty(x.sizes, x.dtype) if given["residual"] is not None else None
        deviation = self.empty(rows, "fp32") if rstd else None
        fields = {**given, "out": out, "out_scale": scale, "sum": total, "rstd": deviation, "eps": eps, "weight_offset": weight_offset}
        mean = None
        if operator == "layer_norm":
            mean = fields["mean"] = self.empty(rows, "fp32") if rstd else None
        self.launch(operator, fields, stream)
        return NormResult(out, deviation, mean, total, scale)

    def rms_norm_backward(self, x: Any, rstd: Any, dout: Any, weight: Any = None, *, weight_offset: float = 0.0, dsum: Any = None,
                          dx: Union[bool, Any] = True, dweight: Union[bool, str, Any] = True, stream: int = 0) -> NormGradients:
        """Gradients of rms_norm: x what it normalised (its sum, with a residual), its rstd (M), dout as x; dsum, the gradient that reaches
        sum from elsewhere, is added to dx. dx: True, False or an array; dweight too, or the name of a type (x's by default).
        Raises as rms_norm."""
        given = self.operands(x=x, rstd=rstd, dout=dout, weight=weight, dsum=dsum)
        fields = {**given, "weight_offset": weight_offset, "dx": self._gradient(dx, given["x"].sizes, given["x"].dtype),
                  "dweight": self._gradient(dweight, given["x"].sizes[-1:], given["x"].dtype)}
        self.launch("rms_norm_backward", fields, stream)
        return NormGradients(fields["dx"], fields["dweight"], None)

    def layer_norm_backward(self, x: Any, mean: Any, rstd: Any, dout: Any, weight: Any = None, *, weight_offset: float = 0.0,
                            dsum: Any = None, dx: Union[bool, Any] = True, dweight: Union[bool, str, Any] = True,
                            dbias: Union[bool, str, Any] = True, stream: int = 0) -> NormGradients:
        """Gradients of layer_norm; as rms_norm_backward, with mean (M) and dbias."""
        given = self.operands(x=x, mean=mean, rstd=rstd, dout=dout, weight=weight, dsum=dsum)
        columns = given["x"].sizes[-1:]
        fields = {**given, "weight_offset": weight_offset, "dx": self._gradient(dx, given["x"].sizes, given["x"].dtype),
                  "dweight": self._gradient(dweight, columns, given["x"].dtype), "dbias": self._gradient(dbias, columns, given["x"].dtype)}
        self.launch("layer_norm_backward", fields, stream)
        return NormGradients(fields["dx"], fields["dweight"], fields["dbias"])

    def _gradient(self, wanted: Any, sizes: Any, dtype: str) -> Any:
        if wanted is False or wanted is None:
            return None
        if wanted is True or isinstance(wanted, str):
            return self.empty(sizes, wanted if isinstance(wanted, str) else dtype)
        return wanted

    def topk(self, x: Any, k: int, axis: int = -1, *, largest: bool = True, ordered: bool = True, index_dtype: str = "int64",
             stream: int = 0) -> TopK:
        """The k largest (or smallest) elements along an axis: x fp32, fp16, bf16 or int32 of rank 1 to 8, k to the axis's size. NaN is
        greater than everything; of equal elements the one with the lower index comes first. Raises as rms_norm."""
        source = arrays.to_device(self, x)
        if not -len(source.sizes) <= axis < len(source.sizes):
            raise ValueError(f"axis is {axis}; x has rank {len(source.sizes)}")
        sizes = list(source.sizes)
        sizes[axis] = k
        values, indices = self.empty(sizes, source.dtype), self.empty(sizes, index_dtype)
        self.launch("topk", {"x": source, "values": values, "indices": indices, "axis": axis, "smallest": int(not largest),
                             "any_order": int(not ordered)}, stream)
        return TopK(values, indices)

    def topk_softmax(self, x: Any, k: int, *, chosen_only: bool = False, weight_dtype: str = "fp32", index_dtype: str = "int32",
                     stream: int = 0) -> TopK:
        """The gate of a mixture of experts: the k best of each row of x (M, N), N to 512, k to 16, and their softmax, over the row or,
        `chosen_only`, over those chosen. Raises as rms_norm."""
        source = arrays.to_device(self, x)
        sizes = (*source.sizes[:-1], k)
        weights, indices = self.empty(sizes, weight_dtype), self.empty(sizes, index_dtype)
        self.launch("topk_softmax", {"x": source, "weights": weights, "indices": indices, "chosen_only": int(chosen_only)}, stream)
        return TopK(weights, indices)
