// A case of topk or topk_softmax: what its line says, its numbers, what a call gave. There is one right answer, to the bit.
#pragma once

#include <string>
#include <vector>

#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/case_tensor.h"
#include "tools/verify/reals.h"

namespace flydsl::verify {

struct TopkSpec {
  std::string name;
  uint64_t seed = 1;
  std::vector<int64_t> shape;
  int64_t axis = -1, k = 1;
  flydsl_aot_dtype dtype = FLYDSL_AOT_FP32, index_dtype = FLYDSL_AOT_INT64;
  bool smallest = false, any_order = false;
  // Of topk_softmax, whose weights are placed and wanted as values are.
  bool chosen_only = false;
  flydsl_aot_dtype weights_dtype = FLYDSL_AOT_FP32;
  Values x;
  int64_t levels = 0;  // only so many different numbers; 0: as they come
  double special =
      0;  // share of elements that are NaN of either sign, infinite or zeros of either sign
  std::vector<double> elements;  // of each row, in place of x
  PlacementRule x_place, values_place, indices_place;
  int64_t repeat = 1;
  std::string expect;
  std::vector<double> want_values, want_indices;  // of the first row

  size_t which_axis() const {
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  }
};

// Throws CaseError.
TopkSpec parse_topk_spec(const std::string &line);
TopkSpec parse_topk_softmax_spec(const std::string &line);
std::string fuzz_topk_line(uint64_t seed);
std::string fuzz_topk_softmax_line(uint64_t seed);
Elements topk_numbers(const TopkSpec &spec);

// The places of the `k` best of a row, the best first.
std::vector<size_t> topk_order(const std::vector<double> &row, bool smallest, size_t k);

Outcome verify_topk_case(flydsl_aot_handle *handle, const TopkSpec &spec);
Outcome verify_topk_softmax_case(flydsl_aot_handle *handle, const TopkSpec &spec);

}  // namespace flydsl::verify
