// Problems for the instances for long rows (kernels/attention_forward/pipelined/).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "test/support/attention_forward_case.h"
#include "test/support/library.h"

namespace flydsl::test {

// The table may prefer another tile for some of them.
inline const int no_tuning = setenv("FLYDSL_AOT_TUNING", "off", 1);

struct LongRows {
  flydsl_aot_dtype dtype;
  int64_t head_dim, head_dim_v;
};

class AttentionForwardLongRows : public ::testing::TestWithParam<LongRows> {
 protected:
  // Long enough for every mask (_FROM of codegen/describe/attention_forward/pipelined.py).
  AttentionCase long_case(int64_t seq_q, int64_t seq_k, const flydsl_aot_mask &mask) const {
    AttentionCase c;
    c.dtype = GetParam().dtype;
    c.head_dim = GetParam().head_dim;
    c.head_dim_v = GetParam().head_dim_v;
    c.seq_q = seq_q;
    c.seq_k = seq_k;
    c.mask = mask;
    c.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
    return c;
  }
};

// Heads of `tiles` row tiles each: those that fill the device, and one more.
inline int64_t heads_of_more_tiles_than_units(int64_t tiles) {
  flydsl_aot_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(flydsl_aot_get_info(emulator(), &info), FLYDSL_AOT_OK);
  return static_cast<int64_t>(info.compute_units) / tiles + 1;
}

inline auto long_rows_instances() {
  return ::testing::Values(LongRows{FLYDSL_AOT_BF16, 128, 128}, LongRows{FLYDSL_AOT_FP16, 128, 128},
                           LongRows{FLYDSL_AOT_BF16, 192, 128},
                           LongRows{FLYDSL_AOT_FP16, 192, 128});
}
inline std::string long_rows_name(const ::testing::TestParamInfo<LongRows> &info) {
  return std::string(flydsl_aot_dtype_name(info.param.dtype)) + "_d" +
         std::to_string(info.param.head_dim);
}

}  // namespace flydsl::test
