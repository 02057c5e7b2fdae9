// A case of grouped_gemm: what its line says, its numbers, what a call gave.
#pragma once

#include <string>
#include <vector>

#include "tools/verify/attention_result.h"
#include "tools/verify/block_scales.h"
#include "tools/verify/case_tensor.h"
#include "tools/verify/reals.h"

namespace flydsl::verify {

// That the groups share.
enum class SharedAxis { kNone, kRows, kColumns, kK };

// An operand of a line: what it holds, and how it lies in memory.
struct GroupedOperand {
  Values values;
  PlacementRule place;
  bool swapped = false;      // the last two axes, in memory
  int64_t nan = 0, inf = 0;  // so many elements at random
  flydsl_aot_dtype dtype = FLYDSL_AOT_BF16;
  // Of e4m3 and e5m2:
  bool any_bits = false;  // all numbers of the type, alike
  BlockScaleOrder scale_order;
  int64_t scale_low = 117, scale_high = 137;  // bytes
  int64_t nan_scales = 0, zero_scales = 0;    // so many, at random
};

struct GroupedGemmSpec {
  std::string name;
  uint64_t seed = 1;
  flydsl_aot_dtype d_dtype = FLYDSL_AOT_BF16;
  SharedAxis axis = SharedAxis::kRows;
  int64_t groups = 1, m = 1, n = 1, k = 1;
  std::vector<int64_t> offsets;  // as the call gets them; empty without an axis
  bool wide_offsets = false;     // int64
  GroupedOperand a, b, d;
  flydsl_aot_dtype bias_dtype = FLYDSL_AOT_DTYPE_INVALID;  // none
  bool bias_of_groups = false;                             // (G, N)
  Values bias;
  PlacementRule bias_place, offsets_place;
  bool varied = false;       // rows of a, columns of b have factors 2^-8 to 2^8
  bool nan_outside = false;  // what belongs to no group is NaN
  int64_t judged = 0;  // so many rows and columns of a group, at random, and its last ones; 0: all
  int64_t repeat = 1;
  std::string expect, kernel;  // a status; a part of the kernel's name
  std::vector<double> want;    // none, or what every element that has a group must be

  bool has_scales() const { return a.dtype == FLYDSL_AOT_E4M3 || a.dtype == FLYDSL_AOT_E5M2; }
  int64_t blocks() const { return k / 32; }
  int64_t size_of_axis() const {
    return axis == SharedAxis::kRows ? m : axis == SharedAxis::kColumns ? n : k;
  }
  // The axes before the matrix's: 1 or, without, 0.
  bool a_has_groups() const { return axis == SharedAxis::kNone || axis == SharedAxis::kColumns; }
  bool b_has_groups() const { return axis == SharedAxis::kNone || axis == SharedAxis::kRows; }
  bool d_has_groups() const { return axis == SharedAxis::kNone || axis == SharedAxis::kK; }
};

// Throws CaseError.
GroupedGemmSpec parse_grouped_gemm_spec(const std::string &line);

// Where groups lie on the axis that they share: where each of them ends, by the rule of the header.
std::vector<int64_t> ends_of_groups(const GroupedGemmSpec &spec);

// Elements in the order of the axes, (G,) M, K and so on.
struct GroupedGemmNumbers {
  Elements a, b, bias;
  std::vector<uint8_t> a_scale, b_scale;  // (G,) M, K / 32 and (G,) N, K / 32; or none
};
GroupedGemmNumbers grouped_gemm_numbers(const GroupedGemmSpec &spec);

struct GroupedGemmResult : CallResult {
  Elements d;
};
GroupedGemmResult call_grouped_gemm(flydsl_aot_handle *handle, const GroupedGemmSpec &spec,
                                    const GroupedGemmNumbers &numbers);

}  // namespace flydsl::verify
