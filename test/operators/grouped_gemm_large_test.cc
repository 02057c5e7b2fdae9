// grouped_gemm where offsets pass 2^31 and 2^32, in elements and in bytes, in every operand; very many rows.
#include <gtest/gtest.h>

#include <cstring>

#include "test/support/far_matrix.h"
#include "test/support/library.h"
#include "tools/verify/grouped_gemm_verify.h"

namespace flydsl::test {
namespace {

using verify::Elements;
using verify::GroupedGemmNumbers;
using verify::GroupedGemmResult;
using verify::GroupedGemmSpec;

// (G), with a stride past 2^32 bytes in all.
class FarOffsets {
 public:
  explicit FarOffsets(const GroupedGemmSpec &spec)
      : memory_({1, 1, spec.groups, kWords}, 2), wide_(spec.wide_offsets) {
    std::vector<uint16_t> words(static_cast<size_t>(spec.groups * kWords));
    for (size_t group = 0; group < spec.offsets.size(); ++group)
      std::memcpy(&words[group * kWords], &spec.offsets[group], sizeof(int64_t));
    memory_.set(words);
  }
  flydsl_aot_tensor view() const {
    flydsl_aot_tensor view{};
    view.data = memory_.tensor().data;
    view.dtype = wide_ ? FLYDSL_AOT_INT64 : FLYDSL_AOT_INT32;
    view.rank = 1;
    view.sizes[0] = memory_.tensor().sizes[2];
    view.strides[0] = memory_.tensor().strides[2] / (wide_ ? 4 : 2);
    return view;
  }

 private:
  static constexpr int64_t kWords = 4;
  FarTensor memory_;
  bool wide_;
};

// Dao-AILab/flash-attention#2214, ROCm/triton#830, facebookexperimental/triton#3389: offsets of 32 bits that wrap.
// *kernel: the one where the far axes are those of groups, and of rows where there are none.
void expect_far_as_near(const std::string &line, std::string *kernel = nullptr) {
  const GroupedGemmSpec spec = verify::parse_grouped_gemm_spec("case " + line);
  const GroupedGemmNumbers numbers = verify::grouped_gemm_numbers(spec);
  const GroupedGemmResult near = verify::call_grouped_gemm(emulator(), spec, numbers);
  ASSERT_EQ(near.status, FLYDSL_AOT_OK) << near.message;
  const auto rank_of = [](bool has_groups) { return has_groups ? 3 : 2; };
  const int64_t of_a = spec.a_has_groups() ? spec.groups : 1,
                of_b = spec.b_has_groups() ? spec.groups : 1,
                of_d = spec.d_has_groups() ? spec.groups : 1;
  // The far axis is one that has more than one index.
  for (const int far : {0, 1}) {
    SCOPED_TRACE(line + ", axis " + std::to_string(far));
    const auto axis = [&](int64_t groups) { return groups == 1 ? 1 : far; };
    FarMatrix a(of_a, spec.a.swapped ? spec.k : spec.m, spec.a.swapped ? spec.m : spec.k,
                axis(of_a));
    FarMatrix b(of_b, spec.b.swapped ? spec.n : spec.k, spec.b.swapped ? spec.k : spec.n,
                axis(of_b));
    FarMatrix d(of_d, spec.m, spec.n, axis(of_d));
    a.set(spec.a.swapped ? transposed(numbers.a, of_a, spec.m, spec.k) : numbers.a);
    b.set(spec.b.swapped ? transposed(numbers.b, of_b, spec.k, spec.n) : numbers.b);
    Elements untouched = near.d;  // as d is there before the call, which leaves what no group has
    for (auto &bits : untouched.bits) bits = verify::kOutputPoison & 0xffff;
    d.set(untouched);
    const FarOffsets offsets(spec);
    FarMatrix bias(1, spec.groups, spec.n, 1);
    Elements bias_rows = numbers.bias;  // one, or of each group one
    bias_rows.bits.resize(static_cast<size_t>(spec.groups * spec.n));
    bias.set(bias_rows);
    flydsl_aot_grouped_gemm_params params{};
    params.struct_size = sizeof params;
    params.a = spec.a.swapped ? a.transposed(rank_of(of_a > 1)) : a.view(rank_of(of_a > 1));
    params.b = spec.b.swapped ? b.transposed(rank_of(of_b > 1)) : b.view(rank_of(of_b > 1));
    params.d = d.view(rank_of(of_d > 1));
    if (spec.axis != verify::SharedAxis::kNone) params.offsets = offsets.view();
    params.bias = bias.view(2);
    if (!spec.bias_of_groups) {
      params.bias.rank = 1;
      params.bias.sizes[0] = spec.n;
      params.bias.strides[0] = 1;
    }
    flydsl_aot_query_result query{};
    query.struct_size = sizeof query;
    ASSERT_EQ(flydsl_aot_grouped_gemm_query(emulator(), &params, &query), FLYDSL_AOT_OK);
    if (kernel && far == 0) *kernel = query.kernel;
    ASSERT_EQ(flydsl_aot_grouped_gemm(emulator(), &params, nullptr), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
    ASSERT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    const std::vector<uint16_t> result = d.get();
    EXPECT_EQ(decltype(near.d.bits)(result.begin(), result.end()), near.d.bits);
  }
}

// K 40: whole pieces of 16 bytes; 33: of no kernel but the general one.
TEST(GroupedGemmLarge, triton_830_offsets_past_32_bits_rows) {
  const std::string shape = "axis=rows m=300 n=136 offsets=60,60,230 bias_dtype=bf16 bias_axes=gn ";
  for (const char *rest : {"k=40 b_order=nk", "k=40", "k=33 b_order=nk offsets_dtype=int64"})
    expect_far_as_near(shape + rest);
}
TEST(GroupedGemmLarge, triton_830_offsets_past_32_bits_columns) {
  const std::string shape = "axis=columns m=136 n=300 offsets=60,60,230 bias_dtype=bf16 ";
  for (const char *rest : {"k=40 b_order=nk offsets_dtype=int64", "k=33"})
    expect_far_as_near(shape + rest);
}
TEST(GroupedGemmLarge, triton_830_offsets_past_32_bits_k) {
  const std::string shape = "axis=k m=264 n=136 offsets=100,100,331 bias_dtype=bf16 bias_axes=gn ";
  for (const char *rest : {"k=336 a_order=km", "k=336 b_order=nk offsets_dtype=int64", "k=333"})
    expect_far_as_near(shape + rest);
}
TEST(GroupedGemmLarge, triton_830_offsets_past_32_bits_none) {
  const std::string shape = "axis=none groups=3 m=140 n=136 bias_dtype=bf16 bias_axes=gn ";
  for (const char *rest : {"k=40 b_order=nk", "k=33"}) expect_far_as_near(shape + rest);
}
// Strides of rows that the fast kernels take, and so many rows that the last ones are past 2^32.
TEST(GroupedGemmLarge, triton_830_offsets_past_32_bits_fast) {
  const std::string rest = " a=int b=int bias_dtype=bf16";
  for (const char *shape : {"axis=rows m=2400 n=136 k=40 b_order=nk offsets=60,60,2300",
                            "axis=rows m=2400 n=136 k=40 offsets=60,60,2300",
                            "axis=columns m=136 n=2400 k=40 b_order=nk offsets=60,60,2300",
                            "axis=k m=136 n=136 k=2400 a_order=km offsets=60,60,2300"}) {
    std::string kernel;
    expect_far_as_near(shape + rest, &kernel);
    EXPECT_EQ(kernel.find("general"), std::string::npos) << shape << ": " << kernel;
  }
}

// pytorch/pytorch#133334: wrong past 500 000 rows.
TEST(GroupedGemmLarge, pytorch_133334_very_many_rows) {
  for (const char *order : {"nk", "kn"}) {
    const GroupedGemmSpec spec = verify::parse_grouped_gemm_spec(
        std::string("case axis=rows m=1000000 n=8 k=8 offsets=3,500001,999999 a=int b=int ") +
        "b_order=" + order);
    EXPECT_EQ(verify::verify_grouped_gemm_case(emulator(), spec).fault, "");
  }
}

}  // namespace
}  // namespace flydsl::test
