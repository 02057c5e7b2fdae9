// A problem of gemm as a case's line says it, its numbers, and what they must come to.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "flydsl_aot/gemm.h"
#include "tools/verify/case_tensor.h"
#include "tools/verify/reals.h"

namespace flydsl::verify {

// One tensor: its type, what it holds, where it lies.
struct GemmTensor {
  enum Layout { kRows, kColumns, kApart };  // the last axis contiguous, the one before, neither
  enum Batches { kAll, kNone, kOne };       // as many as D, no such axis, an axis of 1

  bool present = false;
  flydsl_aot_dtype dtype = FLYDSL_AOT_FP32;
  Values values;
  PlacementRule place;
  Layout layout = kRows;
  Batches batches = kAll;
};

// Outputs that are sums of a matrix: their keys, whose, and whether of its rows.
struct GemmSumKind {
  const char *name;
  char of;
  bool of_rows;
};
constexpr GemmSumKind kGemmSums[] = {
    {"d_sum_m", 'd', true}, {"d_sum_n", 'd', false}, {"a_sum_m", 'a', true}, {"b_sum_n", 'b', false}};

struct GemmSpec {
  std::string name;
  uint64_t seed = 1;
  bool batched = false;
  int64_t batches = 1;
  int64_t m = 1, n = 1, k = 1;
  float alpha = 1, beta = 0;
  GemmTensor a, b, c, d, residual;
  GemmTensor aux;  // an output
  GemmTensor z;    // epilogue.aux that is an input, if it is there
  GemmTensor bias_m, bias_n, a_descale, b_descale, d_scale;
  GemmTensor sums[std::size(kGemmSums)];
  bool a_descale_one = false, b_descale_one = false;  // one for all rows
  bool powers = false;  // factors are powers of two, else between 1/2 and 2
  int32_t activation = FLYDSL_AOT_ACTIVATION_NONE;
  bool c_in_d = false, c_in_aux = false, residual_in_d = false, z_in_d = false;
  bool exact = false;                       // results must be equal to the rounded oracle
  int64_t nan_a = 0, nan_b = 0, inf_a = 0;  // so many elements, at random
  int64_t judged = 0;  // rows and columns of D that are judged, at random and the last; 0: all
  int64_t repeat = 1;
  std::string kernel;          // that must be taken: a part of its name
  std::string expect;          // status of a refusal
  std::vector<double> want_d;  // one number, or one a row: what the oracle must give
};

// Throws CaseError.
GemmSpec parse_gemm_spec(const std::string &line);
std::string fuzz_gemm_line(uint64_t seed);

// All elements in axis order.
struct GemmNumbers {
  Elements a, b, c, residual, z, bias_m, bias_n, a_descale, b_descale, d_scale;
};
GemmNumbers gemm_numbers(const GemmSpec &spec);

// Sizes of tensors whose last axes are these, with its axis of batches if it has one.
std::vector<int64_t> gemm_sizes(const GemmSpec &spec, const GemmTensor &tensor,
                                std::vector<int64_t> last_axes);

// One element from the header's definition, and how far it may be off before it is rounded.
struct GemmElement {
  double z, z_error;  // aux
  double d, d_error;
};
// Of elements: `a` is row `row` of A, `b` column `column` of B, decoded.
GemmElement gemm_element(const GemmSpec &spec, const GemmNumbers &numbers,
                         const std::vector<double> &a, const std::vector<double> &b, int64_t batch,
                         int64_t row, int64_t column);
// One sum: number `kind` of kGemmSums, for row or column `place` of matrix `batch`, or of all matrices where it has no such axis, of D as
// the device stored it.
struct GemmSumValue {
  double sum, error;
};
GemmSumValue gemm_sum(const GemmSpec &spec, const GemmNumbers &numbers, const Elements &d, size_t kind,
                      int64_t batch, int64_t place);
// Decoded K elements.
std::vector<double> gemm_row_of_a(const GemmSpec &spec, const GemmNumbers &numbers, int64_t batch,
                                  int64_t row);
std::vector<double> gemm_column_of_b(const GemmSpec &spec, const GemmNumbers &numbers,
                                     int64_t batch, int64_t column);

}  // namespace flydsl::verify
