// gemm where offsets pass 2^31 and 2^32, in elements and in bytes; many batches.
#include <gtest/gtest.h>

#include "test/support/far_matrix.h"
#include "test/support/library.h"
#include "tools/verify/gemm_verify.h"

namespace flydsl::test {
namespace {

using verify::gemm_numbers;
using verify::GemmNumbers;
using verify::GemmResult;
using verify::GemmSpec;
using verify::parse_gemm_spec;

// Dao-AILab/flash-attention#2214, ROCm/triton#830, facebookexperimental/triton#3389: offsets of 32 bits that wrap.
TEST(GemmLarge, triton_830_offsets_past_32_bits) {
  for (const char *k : {"40", "33"}) {
    const GemmSpec spec = parse_gemm_spec(std::string("case m=140 n=200 batch=2 beta=1 k=") + k);
    const GemmNumbers numbers = gemm_numbers(spec);
    const GemmResult compact = verify::call_gemm(emulator(), spec, numbers);
    ASSERT_EQ(compact.status, FLYDSL_AOT_OK) << compact.message;
    for (const int far : {0, 1}) {
      for (const bool columns : {false, true}) {
        SCOPED_TRACE(std::string("k ") + k + ", axis " + std::to_string(far) +
                     (columns ? ", columns contiguous" : ", rows contiguous"));
        FarMatrix a(2, columns ? spec.k : 140, columns ? 140 : spec.k, far);
        FarMatrix b(2, columns ? 200 : spec.k, columns ? spec.k : 200, far);
        FarMatrix c(2, 140, 200, far), d(2, 140, 200, far);
        a.set(columns ? transposed(numbers.a, 2, 140, spec.k) : numbers.a);
        b.set(columns ? transposed(numbers.b, 2, spec.k, 200) : numbers.b);
        c.set(numbers.c);
        flydsl_aot_gemm_params params{};
        params.struct_size = sizeof params;
        params.alpha = params.beta = 1;
        params.a = columns ? a.transposed() : a.view();
        params.b = columns ? b.transposed() : b.view();
        params.c = c.view();
        params.d = d.view();
        ASSERT_EQ(flydsl_aot_gemm(emulator(), &params, nullptr), FLYDSL_AOT_OK)
            << flydsl_aot_last_error();
        ASSERT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK)
            << flydsl_aot_last_error();
        const std::vector<uint16_t> result = d.get();
        EXPECT_EQ(decltype(compact.d.bits)(result.begin(), result.end()), compact.d.bits);
      }
    }
  }
}

// pytorch/pytorch#146704: counts of batches past the limits of a grid's y and z.
TEST(GemmLarge, pytorch_146704_many_batches) {
  const GemmSpec spec =
      parse_gemm_spec("case m=2 n=3 k=4 batch=65600 a=int b=int d_dtype=fp32 exact=yes");
  const verify::Outcome outcome = verify::verify_gemm_case(emulator(), spec);
  EXPECT_EQ(outcome.fault, "");
}

}  // namespace
}  // namespace flydsl::test
