// Which gemm problems are refused, and with what message. The rules are those of include/flydsl_aot/gemm.h.
#include <array>

#include "v2src/attention_check.h"
#include "v2src/gemm.h"
#include "v2src/matrix_check.h"
#include "v2src/plain_look.h"
#include "v2src/rows.h"
#include "v2src/tensor_check.h"

namespace flydsl::gemm {
namespace {

constexpr const char *kMatrixAxes[2][3] = {{"M", "N"}, {"batch", "M", "N"}};
constexpr const char *kAAxes[2][3] = {{"M", "K"}, {"batch", "M", "K"}};
constexpr const char *kBAxes[2][3] = {{"K", "N"}, {"batch", "K", "N"}};
constexpr const char *kRowAxes[2][2] = {{"M"}, {"batch", "M"}};
constexpr const char *kColumnAxes[2][2] = {{"N"}, {"batch", "N"}};
constexpr const char *kOneAxis[] = {"1"};

constexpr int64_t kMaxSize = int64_t{1} << 30;
constexpr int64_t kLeastTile = 64;

struct Operands {
  Operand a, b, c, d, residual, aux, bias_m, bias_n, a_descale, b_descale, d_scale;
  Operand d_sum_m, d_sum_n, a_sum_m, b_sum_n;

  // Outputs beside d and aux, and what they are sums of.
  struct Sum {
    const Operand &sum, &of;
    bool of_rows;  // one for each row of it
  };
  std::array<Sum, kMostSums> sums() const {
    return {Sum{d_sum_m, d, true}, {d_sum_n, d, false}, {a_sum_m, a, true}, {b_sum_n, b, false}};
  }
};

Operands operands_of(const Params &params) {
  const auto matrix = [](const char *name, const flydsl_aot_tensor &tensor, const auto &axes) {
    return Operand{name, &tensor, axes[tensor.rank == 3]};
  };
  const auto vector = [](const char *name, const flydsl_aot_tensor &tensor, const auto &axes) {
    return Operand{name, &tensor, axes[tensor.rank == 2]};
  };
  return {matrix("a", params.a, kAAxes),
          matrix("b", params.b, kBAxes),
          matrix("c", params.c, kMatrixAxes),
          matrix("d", params.d, kMatrixAxes),
          matrix("epilogue.residual", params.epilogue.residual, kMatrixAxes),
          matrix("epilogue.aux", params.epilogue.aux, kMatrixAxes),
          vector("epilogue.bias_m", params.epilogue.bias_m, kRowAxes),
          vector("epilogue.bias_n", params.epilogue.bias_n, kColumnAxes),
          vector("a_descale", params.a_descale, kRowAxes),
          vector("b_descale", params.b_descale, kColumnAxes),
          {"d_scale", &params.d_scale, kOneAxis},
          vector("d_sum_m", params.d_sum_m, kRowAxes),
          vector("d_sum_n", params.d_sum_n, kColumnAxes),
          vector("a_sum_m", params.a_sum_m, kRowAxes),
          vector("b_sum_n", params.b_sum_n, kColumnAxes)};
}

bool present(const Operand &operand) {
  return flydsl::present(*operand.tensor);
}

// C counts only where it is read.
bool reads_c(const Params &params) {
  return params.beta != 0;
}

Status check_dtypes(const Params &params, const Operands &all) {
  for (const Operand *operand : {&all.a, &all.b, &all.d})
    FLYDSL_RETURN_IF_ERROR(check_element_dtype(*operand, ElementKinds::kWideOr8Bit));
  if (params.a.dtype != params.b.dtype && !(is_8bit(params.a.dtype) && is_8bit(params.b.dtype))) {
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "a is %s, but b is %s; they must be the same (e4m3 and e5m2 may be mixed)",
                 flydsl_aot_dtype_name(params.a.dtype), flydsl_aot_dtype_name(params.b.dtype));
  }
  if (reads_c(params)) FLYDSL_RETURN_IF_ERROR(check_element_dtype(all.c, ElementKinds::kWide));
  for (const Operand *operand : {&all.residual, &all.aux, &all.bias_m, &all.bias_n})
    if (present(*operand))
      FLYDSL_RETURN_IF_ERROR(check_element_dtype(*operand, ElementKinds::kWide));
  for (const auto &[sum, of, of_rows] : all.sums()) {
    if (!present(sum)) continue;
    FLYDSL_RETURN_IF_ERROR(check_element_dtype(sum, ElementKinds::kWide));
    if (is_8bit(of.tensor->dtype))
      return error(FLYDSL_AOT_UNSUPPORTED_DTYPE,
                   "%s is given, but %s is %s; sums are of fp32, fp16 or bf16", sum.name, of.name,
                   flydsl_aot_dtype_name(of.tensor->dtype));
  }
  const struct {
    const Operand &scale, &of;
  } scales[] = {{all.a_descale, all.a}, {all.b_descale, all.b}, {all.d_scale, all.d}};
  for (const auto &[scale, of] : scales) {
    if (!present(scale)) continue;
    FLYDSL_RETURN_IF_ERROR(check_fp32(scale));
    if (is_8bit(of.tensor->dtype)) continue;
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "%s is given, but %s is %s; it goes with e4m3 or e5m2", scale.name, of.name,
                 flydsl_aot_dtype_name(of.tensor->dtype));
  }
  return {};
}

Status check_shapes(const Params &params, const Operands &all) {
  for (const Operand *operand : {&all.a, &all.b}) {
    const int32_t rank = operand->tensor->rank;
    if (rank != 2 && rank != 3)
      return error(FLYDSL_AOT_INVALID_SHAPE, "%s has rank %d; expected 2 or 3", operand->name,
                   rank);
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, rank));
  }
  MatrixShape shape{};
  shape.batched = params.a.rank == 3 || params.b.rank == 3;
  shape.batches = shape.batched && params.d.rank == 3 ? params.d.sizes[0] : 1;
  shape.rows = params.a.sizes[params.a.rank - 2];
  shape.columns = params.b.sizes[params.b.rank - 1];
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.a, params.a.rank - 1, all.b, params.b.rank - 2));
  FLYDSL_RETURN_IF_ERROR(check_matrix(all.d, shape, true));
  MatrixShape operand = shape;
  operand.columns = params.a.sizes[params.a.rank - 1];
  FLYDSL_RETURN_IF_ERROR(check_matrix(all.a, operand, false));
  operand = shape;
  operand.rows = params.b.sizes[params.b.rank - 2];
  FLYDSL_RETURN_IF_ERROR(check_matrix(all.b, operand, false));
  if (reads_c(params)) FLYDSL_RETURN_IF_ERROR(check_matrix(all.c, shape, false));
  if (present(all.residual)) FLYDSL_RETURN_IF_ERROR(check_matrix(all.residual, shape, false));
  if (present(all.aux))
    FLYDSL_RETURN_IF_ERROR(check_matrix(all.aux, shape, params.epilogue.gradient == 0));
  const struct {
    const Operand &operand;
    int64_t size;
    bool or_one;
  } vectors[] = {{all.bias_m, shape.rows, false},
                 {all.bias_n, shape.columns, false},
                 {all.a_descale, shape.rows, true},
                 {all.b_descale, shape.columns, true}};
  for (const auto &[vector, size, or_one] : vectors)
    if (present(vector)) FLYDSL_RETURN_IF_ERROR(check_vector(vector, size, shape, or_one));
  for (const auto &[sum, of, of_rows] : all.sums()) {
    if (!present(sum)) continue;
    FLYDSL_RETURN_IF_ERROR(check_vector(sum, of_rows ? shape.rows : shape.columns, shape, false));
    if (sum.tensor->rank == 2 && sum.tensor->sizes[0] != shape.batches)
      return error(FLYDSL_AOT_INVALID_SHAPE, "%s has batch = %lld; it must be %lld, as an output",
                   sum.name, static_cast<long long>(sum.tensor->sizes[0]),
                   static_cast<long long>(shape.batches));
  }
  if (present(all.d_scale)) {
    FLYDSL_RETURN_IF_ERROR(check_shape(all.d_scale, 1));
    if (params.d_scale.sizes[0] != 1)
      return error(FLYDSL_AOT_INVALID_SHAPE, "d_scale has %lld elements; it must have 1",
                   static_cast<long long>(params.d_scale.sizes[0]));
  }
  return {};
}

Status check_gradient(const flydsl_aot_epilogue &epilogue) {
  if (epilogue.gradient == 0) return {};
  if (epilogue.gradient != 1)
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "epilogue.gradient is %d; it must be 0 or 1",
                 epilogue.gradient);
  if (epilogue.activation == FLYDSL_AOT_ACTIVATION_NONE)
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "epilogue.gradient is 1, but epilogue.activation is NONE (0); it is the activation "
                 "whose derivative is taken");
  if (epilogue.aux.rank != 0) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE,
               "epilogue.aux is absent (rank 0), but epilogue.gradient is 1, which reads it");
}

Status check_limits(const Params &params) {
  const int64_t m = params.a.sizes[params.a.rank - 2], k = params.a.sizes[params.a.rank - 1];
  const int64_t n = params.b.sizes[params.b.rank - 1];
  const int64_t batches = params.d.rank == 3 ? params.d.sizes[0] : 1;
  const struct {
    const char *name;
    int64_t value;
  } sizes[] = {{"M", m}, {"N", n}, {"K", k}, {"the batch", batches}};
  for (const auto &[name, value] : sizes) {
    if (value <= kMaxSize) continue;
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s is %lld; at most %lld", name,
                 static_cast<long long>(value), static_cast<long long>(kMaxSize));
  }
  const int64_t tiles = ((m + kLeastTile - 1) / kLeastTile) * ((n + kLeastTile - 1) / kLeastTile);
  int64_t all = 0;
  if (!__builtin_mul_overflow(tiles, batches, &all) && all < int64_t{1} << 31) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
               "M is %lld, N %lld, the batch %lld; ceil(M / 64) * ceil(N / 64) * batch must be "
               "below 2^31",
               static_cast<long long>(m), static_cast<long long>(n),
               static_cast<long long>(batches));
}

Status check_overlaps(const Operand &output, std::initializer_list<const Operand *> inputs,
                      std::initializer_list<const Operand *> may_be_same) {
  for (const Operand *input : inputs) {
    if (!present(*input)) continue;
    bool same = false;
    for (const Operand *other : may_be_same)
      same |= other == input && same_view(*output.tensor, *input->tensor);
    if (!same) FLYDSL_RETURN_IF_ERROR(check_no_overlap(output, *input));
  }
  return {};
}

// They share memory with nothing.
Status check_sums(const Operands &all, std::initializer_list<const Operand *> inputs,
                  const Operand &written_aux) {
  const auto sums = all.sums();
  for (size_t i = 0; i < sums.size(); ++i) {
    const Operand &sum = sums[i].sum;
    if (!present(sum)) continue;
    FLYDSL_RETURN_IF_ERROR(check_overlaps(sum, inputs, {}));
    FLYDSL_RETURN_IF_ERROR(check_no_overlap(sum, all.d));
    if (present(written_aux)) FLYDSL_RETURN_IF_ERROR(check_no_overlap(sum, written_aux));
    for (size_t j = 0; j < i; ++j)
      if (present(sums[j].sum)) FLYDSL_RETURN_IF_ERROR(check_no_overlap(sum, sums[j].sum));
  }
  return {};
}

Status check_memory(const Params &params, const Operands &all, bool query) {
  // C that is not read is none of the inputs, and the auxiliary matrix is one or an output.
  static constexpr flydsl_aot_tensor kAbsent{};
  const bool reads_aux = params.epilogue.gradient != 0;
  const Operand c{"c", reads_c(params) ? &params.c : &kAbsent, all.c.axes};
  const Operand read_aux{all.aux.name, reads_aux ? all.aux.tensor : &kAbsent, all.aux.axes};
  const Operand written_aux{all.aux.name, reads_aux ? &kAbsent : all.aux.tensor, all.aux.axes};
  for (const Operand *output : {&all.d, &written_aux})
    if (present(*output)) FLYDSL_RETURN_IF_ERROR(check_output_memory(*output, query));
  const std::initializer_list<const Operand *> inputs = {
      &all.a,      &all.b,         &c,             &all.residual, &read_aux, &all.bias_m,
      &all.bias_n, &all.a_descale, &all.b_descale, &all.d_scale};
  for (const Operand *input : inputs)
    if (present(*input)) FLYDSL_RETURN_IF_ERROR(check_input_memory(*input, query));
  for (const auto &[sum, of, of_rows] : all.sums())
    if (present(sum)) FLYDSL_RETURN_IF_ERROR(check_output_memory(sum, query));
  if (query) return {};
  FLYDSL_RETURN_IF_ERROR(check_sums(all, inputs, written_aux));
  FLYDSL_RETURN_IF_ERROR(check_overlaps(all.d, inputs, {&c, &all.residual, &read_aux}));
  if (!present(written_aux)) return {};
  FLYDSL_RETURN_IF_ERROR(check_overlaps(written_aux, inputs, {&c}));
  return check_no_overlap(written_aux, all.d);
}

// Whether everything is plain to see right, of a call with matrices of one rank, 2 or 3, and no other output than D.
template <int rank>
bool is_plain(const Params &params) {
  using Is = PlainLook::Is;
  using Last = PlainLook::Last;
  constexpr int kRows = rank - 2, kColumns = rank - 1;
  const flydsl_aot_tensor &a = params.a, &b = params.b, &d = params.d;
  const flydsl_aot_epilogue &epilogue = params.epilogue;
  PlainLook look;
  const PlainLook::Memory written = look.tensor<rank, Is::kOutput, Last::kAny>(d);
  look.expect_apart(written, look.tensor<rank, Is::kInput, Last::kAny>(a));
  look.expect_apart(written, look.tensor<rank, Is::kInput, Last::kAny>(b));
  look.expect_same_sizes<rank - 1>(a, d);
  if constexpr (rank == 3) look.expect(a.sizes[0] == b.sizes[0]);
  look.expect(a.sizes[kColumns] == b.sizes[kRows] && b.sizes[kColumns] == d.sizes[kColumns]);
  look.expect(is_real(a.dtype) && b.dtype == a.dtype && is_real(d.dtype));
  const auto see_matrix = [&](const flydsl_aot_tensor &matrix) {
    const PlainLook::Memory memory = look.tensor<rank, Is::kInput, Last::kAny>(matrix);
    look.expect_same_sizes<rank>(matrix, d);
    look.expect(is_real(matrix.dtype));
    if (matrix.data != d.data || !same_view(d, matrix)) look.expect_apart(written, memory);
  };
  if (reads_c(params)) see_matrix(params.c);
  if (flydsl::present(epilogue.residual)) see_matrix(epilogue.residual);
  const auto see_vector = [&](const flydsl_aot_tensor &vector, int64_t size) {
    if (!flydsl::present(vector)) return;
    look.expect_apart(written, look.tensor<1, Is::kInput, Last::kAny>(vector));
    look.expect(vector.sizes[0] == size && is_real(vector.dtype));
  };
  see_vector(epilogue.bias_m, d.sizes[kRows]);
  see_vector(epilogue.bias_n, d.sizes[kColumns]);
  if (!look.all_plain()) return false;
  // Each factor is below 2^29.
  const int64_t tiles = (d.sizes[kRows] / kLeastTile + 1) * (d.sizes[kColumns] / kLeastTile + 1);
  return tiles >> 31 == 0 && (rank == 2 || tiles * d.sizes[0] >> 31 == 0);
}

bool is_plain(const Params &params) {
  const flydsl_aot_epilogue &epilogue = params.epilogue;
  const int32_t others = params.a_descale.rank | params.b_descale.rank | params.d_scale.rank |
                         params.d_sum_m.rank | params.d_sum_n.rank | params.a_sum_m.rank |
                         params.b_sum_n.rank | epilogue.aux.rank | epilogue.gradient |
                         params.reserved;
  return others == 0 && check_factor("alpha", params.alpha).ok() &&
         check_factor("beta", params.beta).ok() && check_activation(epilogue.activation).ok() &&
         (params.d.rank == 2 ? is_plain<2>(params) : is_plain<3>(params));
}

}  // namespace

Status check(const Params &params, bool query) {
  if (!query && is_plain(params)) return {};
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_required({&all.a, &all.b, &all.d}, "a, b and d"));
  FLYDSL_RETURN_IF_ERROR(check_factor("alpha", params.alpha));
  FLYDSL_RETURN_IF_ERROR(check_factor("beta", params.beta));
  if (reads_c(params) && !present(all.c)) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "c is absent (rank 0), but beta is %g",
                 static_cast<double>(params.beta));
  }
  FLYDSL_RETURN_IF_ERROR(check_reserved("reserved", params.reserved));
  FLYDSL_RETURN_IF_ERROR(check_activation(params.epilogue.activation));
  FLYDSL_RETURN_IF_ERROR(check_gradient(params.epilogue));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_limits(params));
  return check_memory(params, all, query);
}

}  // namespace flydsl::gemm
