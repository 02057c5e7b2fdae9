#include "test/aotriton/client.h"

#include <stdexcept>
#include <vector>

namespace flydsl::test {

aotriton::DType dtype_of(flydsl_aot_dtype dtype) {
  switch (dtype) {
    case FLYDSL_AOT_FP32:
      return aotriton::kFloat32;
    case FLYDSL_AOT_FP16:
      return aotriton::kFloat16;
    case FLYDSL_AOT_BF16:
      return aotriton::kBFloat16;
    case FLYDSL_AOT_INT32:
      return aotriton::kInt32;
    default:
      return aotriton::kUnknown;
  }
}

TensorView<2> lse_view(const flydsl_aot_tensor &tensor) {
  if (tensor.rank == 0)
    return {0, {0, 0}, {0, 0}, aotriton::kFloat32};
  if (tensor.rank == 2) return view_of<2>(tensor);
  const uint64_t lines = static_cast<uint64_t>(tensor.sizes[0] * tensor.sizes[1]);
  return {reinterpret_cast<intptr_t>(tensor.data),
          {lines, static_cast<uint64_t>(tensor.sizes[2])},
          {static_cast<uint64_t>(tensor.strides[1]), static_cast<uint64_t>(tensor.strides[2])},
          aotriton::kFloat32};
}

void set_forward(const flydsl_aot_attention_forward_params &from, Way way,
                 flash::attn_fwd_params *to) {
  set_inputs(from, way, to);
  to->L = lse_view(from.lse);
  to->philox_seed_output = number_view(from.dropout_seed_out);
  to->philox_offset_output = number_view(from.dropout_offset_out);
  to->encoded_softmax = TensorView<4>(0, {0, 0, 0, 0}, {1, 1, 1, 1}, to->Q.dtype());
  to->persistent_atomic_counter = TensorView<0>(0, aotriton::kInt32);
}

namespace {

template <int Rank>
TensorView<Rank> acquire(aotriton::LazyTensor<Rank> *self) {
  LazyContext &context = *static_cast<LazyContext *>(self->cookie);
  ++context.acquired;
  if (context.throws) throw std::runtime_error("out of memory");
  std::array<uint64_t, Rank> sizes, strides;
  uint64_t elements = 1;
  for (int axis = Rank - 1; axis >= 0; --axis) {
    sizes[axis] = context.sizes[axis];
    strides[axis] = elements;
    elements *= sizes[axis];
  }
  return {reinterpret_cast<intptr_t>(context.memory), sizes, strides, aotriton::kFloat32};
}

template <int Rank>
void dispose(aotriton::LazyTensor<Rank> *self) {
  ++static_cast<LazyContext *>(self->cookie)->disposed;
}

template <int Rank>
void set_lazy(LazyContext *context, aotriton::LazyTensor<Rank> *to) {
  *to = aotriton::LazyTensor<Rank>{
      .cookie = context, .acquire = acquire<Rank>, .dispose = dispose<Rank>, .eager = {}};
}

}  // namespace

void LazyContext::reserve(std::vector<uint64_t> of) {
  sizes = std::move(of);
  uint64_t bytes = sizeof(float);
  for (const uint64_t size : sizes) bytes *= size;
  const std::vector<unsigned char> poison(bytes, 0xFF);
  if (flydsl_aot_device_malloc(handle, bytes, &memory) != FLYDSL_AOT_OK ||
      flydsl_aot_device_upload(handle, memory, poison.data(), bytes) != FLYDSL_AOT_OK)
    throw std::runtime_error(flydsl_aot_last_error());
}

void set_backward(const flydsl_aot_attention_backward_params &from, Way way, LazyContext *row_sums,
                  LazyContext *dq_accumulator, flash::attn_bwd_params *to) {
  set_inputs(from, way, to);
  to->L = lse_view(from.lse);
  to->DO = view_of<4>(from.dout);
  to->DQ = view_of<4>(from.dq);
  to->DK = view_of<4>(from.dk);
  to->DV = view_of<4>(from.dv);
  const TensorView<4> none(0, {0, 0, 0, 0}, {0, 0, 0, 0}, to->Q.dtype());
  if (from.bias.rank == 0) to->B = none;
  to->DB = from.dbias.rank != 0 ? view_of<4>(from.dbias) : none;
  row_sums->reserve({to->L.size(0), to->L.size(1)});
  dq_accumulator->reserve({to->DQ.size(0), to->DQ.size(1), to->DQ.size(2), to->DQ.size(3)});
  set_lazy(row_sums, &to->D);
  set_lazy(dq_accumulator, &to->DQ_ACC);
}

}  // namespace flydsl::test
