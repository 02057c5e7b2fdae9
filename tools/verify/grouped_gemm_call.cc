// A call of grouped_gemm on a case.
#include <utility>

#include "tools/verify/grouped_gemm_case.h"
#include "tools/verify/matrix_order.h"
#include "tools/verify/operator_call.h"

namespace flydsl::verify {
namespace {

// With the last two axes exchanged, `rows` and `columns` those of before.
Elements exchanged(const Elements &elements, int64_t rows, int64_t columns) {
  Elements result(elements.dtype, 0);
  const auto count = static_cast<int64_t>(elements.bits.size());
  result.bits = transposed(elements.bits, count > 0 ? count / (rows * columns) : 0, rows, columns);
  return result;
}

// An operand lies in memory in the order of these sizes.
std::vector<int64_t> sizes_in_memory(const GroupedOperand &operand, bool has_groups, int64_t groups,
                                     int64_t rows, int64_t columns) {
  std::vector<int64_t> sizes = {rows, columns};
  if (operand.swapped) std::swap(sizes[0], sizes[1]);
  if (has_groups) sizes.insert(sizes.begin(), groups);
  return sizes;
}

flydsl_aot_tensor in_order(flydsl_aot_tensor tensor, bool swapped) {
  if (swapped) swap_last_axes(&tensor);
  return tensor;
}

}  // namespace

GroupedGemmResult call_grouped_gemm(flydsl_aot_handle *handle, const GroupedGemmSpec &spec,
                                    const GroupedGemmNumbers &numbers) {
  OperatorCall call(handle, spec.seed);
  flydsl_aot_grouped_gemm_params params{};
  const auto input = [&](const char *name, const GroupedOperand &operand, const Elements &elements,
                         bool has_groups, int64_t rows, int64_t columns) {
    const auto sizes = sizes_in_memory(operand, has_groups, spec.groups, rows, columns);
    const DeviceTensor &tensor =
        call.input(name, operand.swapped ? exchanged(elements, rows, columns) : elements, sizes,
                   operand.place, static_cast<int>(sizes.size()));
    return in_order(tensor.tensor(), operand.swapped);
  };
  params.a = input("a", spec.a, numbers.a, spec.a_has_groups(), spec.m, spec.k);
  params.b = input("b", spec.b, numbers.b, spec.b_has_groups(), spec.k, spec.n);
  if (spec.has_scales()) {
    params.scale_layout = spec.a.scale_order.layout;
    params.a_scale =
        put_block_scales(call, "a_scale", spec.a.scale_order, spec.a_has_groups() ? spec.groups : 0,
                         spec.m, spec.blocks(), numbers.a_scale);
    params.b_scale =
        put_block_scales(call, "b_scale", spec.b.scale_order, spec.b_has_groups() ? spec.groups : 0,
                         spec.n, spec.blocks(), numbers.b_scale);
  }
  if (spec.axis != SharedAxis::kNone) {
    // As pairs of words, low ones first.
    Elements offsets(FLYDSL_AOT_INT32, 0);
    for (const int64_t offset : spec.offsets) {
      offsets.bits.push_back(static_cast<uint32_t>(offset));
      if (spec.wide_offsets)
        offsets.bits.push_back(static_cast<uint32_t>(static_cast<uint64_t>(offset) >> 32));
    }
    const std::vector<int64_t> sizes = {static_cast<int64_t>(offsets.bits.size())};
    params.offsets = call.input("offsets", offsets, sizes, spec.offsets_place, 1).tensor();
    if (spec.wide_offsets) {
      params.offsets.dtype = FLYDSL_AOT_INT64;
      params.offsets.sizes[0] = spec.groups;
    }
  }
  if (spec.bias_dtype != FLYDSL_AOT_DTYPE_INVALID) {
    std::vector<int64_t> sizes = {spec.n};
    if (spec.bias_of_groups) sizes.insert(sizes.begin(), spec.groups);
    params.bias =
        call.input("bias", numbers.bias, sizes, spec.bias_place, static_cast<int>(sizes.size()))
            .tensor();
  }
  const auto d_sizes = sizes_in_memory(spec.d, spec.d_has_groups(), spec.groups, spec.m, spec.n);
  DeviceTensor &d =
      call.output("d", spec.d_dtype, d_sizes, spec.d.place, static_cast<int>(d_sizes.size()));
  params.d = in_order(d.tensor(), spec.d.swapped);
  GroupedGemmResult result;
  call.run(&params, flydsl_aot_grouped_gemm_query, flydsl_aot_grouped_gemm, &result);
  if (result.device_failed) return result;
  result.d = Elements::taken_from(d);
  if (spec.d.swapped) result.d = exchanged(result.d, spec.n, spec.m);
  return result;
}

}  // namespace flydsl::verify
