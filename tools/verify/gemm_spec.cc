// Lines of cases of gemm, and their numbers.
#include <algorithm>

#include "tools/verify/gemm_case.h"
#include "tools/verify/matrix_verdict.h"

namespace flydsl::verify {
namespace {

constexpr flydsl_aot_dtype kTypes[] = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16, FLYDSL_AOT_FP32,
                                       FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2};
const std::vector<std::string> kTypeNames = {"bf16", "fp16", "fp32", "e4m3", "e5m2"};
// What no instance takes, for refusals.
const std::vector<std::string> kOtherNames = {"e4m3_fnuz", "e8m0", "int32"};
constexpr flydsl_aot_dtype kOthers[] = {FLYDSL_AOT_E4M3_FNUZ, FLYDSL_AOT_E8M0, FLYDSL_AOT_INT32};

enum Stream : uint64_t {
  kA = 1,
  kB,
  kC,
  kResidual,
  kBiasM,
  kBiasN,
  kADescale,
  kBDescale,
  kDScale,
  kSpecial,
  kZ
};

flydsl_aot_dtype type_of(CaseLine &line, const std::string &key, flydsl_aot_dtype otherwise) {
  std::vector<std::string> names = kTypeNames;
  names.insert(names.end(), kOtherNames.begin(), kOtherNames.end());
  if (!line.has(key)) return otherwise;
  const size_t number = line.choice(key, 0, names);
  return number < kTypeNames.size() ? kTypes[number] : kOthers[number - kTypeNames.size()];
}

bool is_wide(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_BF16 || dtype == FLYDSL_AOT_FP16 || dtype == FLYDSL_AOT_FP32;
}

void parse_place(CaseLine &line, const std::string &name, const std::string &axes,
                 GemmTensor *tensor) {
  tensor->place = parse_placement(line, name, axes);
  tensor->layout = static_cast<GemmTensor::Layout>(
      line.choice(name + "_layout", 0, {"rows", "columns", "apart"}));
  tensor->batches =
      static_cast<GemmTensor::Batches>(line.choice(name + "_batch", 0, {"all", "none", "one"}));
}

// An input; with `optional` it is there if its key is.
void parse_input(CaseLine &line, const std::string &name, const std::string &axes,
                 flydsl_aot_dtype dtype, bool optional, GemmTensor *tensor) {
  tensor->present = !optional || line.has(name);
  tensor->dtype = type_of(line, name + "_dtype", dtype);
  tensor->values = parse_values(line, name);
  parse_place(line, name, axes, tensor);
}

// none, one for all rows, or one for each.
void parse_descale(CaseLine &line, const std::string &name, const std::string &axes,
                   GemmTensor *tensor, bool *one) {
  const size_t kind = line.choice(name, 0, {"none", "one", "each"});
  tensor->present = kind > 0;
  *one = kind == 1;
  parse_place(line, name, axes, tensor);
}

void check_special(CaseLine &line, const GemmSpec &spec) {
  if (spec.nan_a + spec.inf_a > 0 && !spec.a.place.zero.empty())
    line.fail("a_zero", "goes without nan_a and inf_a");
  if (spec.nan_b > 0 && !spec.b.place.zero.empty()) line.fail("b_zero", "goes without nan_b");
  if (spec.inf_a > 0 && spec.a.dtype == FLYDSL_AOT_E4M3) line.fail("inf_a", "e4m3 has no infinity");
}

void check_in_place(CaseLine &line, const GemmSpec &spec) {
  if (spec.c_in_d && (spec.beta == 0 || spec.c.dtype != spec.d.dtype || spec.residual_in_d))
    line.fail("c_in_d", "needs beta, types of c and d that are equal, and no residual_in_d");
  if (spec.c_in_aux &&
      (spec.beta == 0 || !spec.aux.present || spec.c_in_d || spec.c.dtype != spec.aux.dtype))
    line.fail("c_in_aux", "needs beta, aux, types of c and aux that are equal, and no c_in_d");
  if (spec.z_in_d && (!spec.z.present || spec.c_in_d || spec.residual_in_d ||
                      spec.z.dtype != spec.d.dtype))
    line.fail("z_in_d", "needs a z of the type of d, and neither c_in_d nor residual_in_d");
  if (spec.residual_in_d && (!spec.residual.present || spec.residual.dtype != spec.d.dtype))
    line.fail("residual_in_d", "needs a residual of the type of d");
}

}  // namespace

GemmSpec parse_gemm_spec(const std::string &text) {
  CaseLine line(text);
  constexpr int64_t kMost = int64_t{1} << 40;
  GemmSpec spec;
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  spec.batched = line.has("batch");
  spec.batches = line.integer("batch", 1, 0, kMost);
  spec.m = line.integer("m", 1, 0, kMost);
  spec.n = line.integer("n", 1, 0, kMost);
  spec.k = line.integer("k", 1, 0, kMost);
  spec.alpha = static_cast<float>(line.number("alpha", 1));
  spec.beta = static_cast<float>(line.number("beta", 0));
  const flydsl_aot_dtype dtype = type_of(line, "dtype", FLYDSL_AOT_BF16);
  const flydsl_aot_dtype wide = is_wide(dtype) ? dtype : FLYDSL_AOT_BF16;
  parse_input(line, "a", "bmk", dtype, false, &spec.a);
  parse_input(line, "b", "bkn", spec.a.dtype, false, &spec.b);
  spec.d.present = true;
  spec.d.dtype = type_of(line, "d_dtype", wide);
  parse_place(line, "d", "", &spec.d);
  parse_input(line, "c", "bmn", is_wide(spec.d.dtype) ? spec.d.dtype : wide, false, &spec.c);
  spec.c.present = spec.beta != 0;
  parse_input(line, "residual", "bmn", is_wide(spec.d.dtype) ? spec.d.dtype : wide, true,
              &spec.residual);
  parse_input(line, "bias_m", "bm", FLYDSL_AOT_FP32, true, &spec.bias_m);
  parse_input(line, "bias_n", "bn", FLYDSL_AOT_FP32, true, &spec.bias_n);
  spec.aux.present = line.has("aux");
  spec.aux.dtype = type_of(line, "aux", wide);
  parse_place(line, "aux", "", &spec.aux);
  parse_input(line, "z", "bmn", wide, true, &spec.z);
  if (spec.aux.present && spec.z.present) line.fail("z", "goes without aux");
  for (size_t kind = 0; kind < std::size(kGemmSums); ++kind) {
    const char *const name = kGemmSums[kind].name;
    spec.sums[kind].present = line.has(name);
    spec.sums[kind].dtype = type_of(line, name, wide);
    parse_place(line, name, "", &spec.sums[kind]);
  }
  parse_descale(line, "a_descale", "bm", &spec.a_descale, &spec.a_descale_one);
  parse_descale(line, "b_descale", "bn", &spec.b_descale, &spec.b_descale_one);
  spec.d_scale.present = line.has("d_scale");
  spec.d_scale.values = parse_values(line, "d_scale");
  spec.d_scale.batches = GemmTensor::kNone;
  const auto yes = [&](const char *key) { return line.choice(key, 0, {"no", "yes"}) == 1; };
  spec.powers = yes("powers");
  spec.activation = static_cast<int32_t>(
      line.choice("activation", 0, {"none", "relu", "gelu", "gelu_tanh", "silu"}));
  spec.c_in_d = yes("c_in_d");
  spec.c_in_aux = yes("c_in_aux");
  spec.residual_in_d = yes("residual_in_d");
  spec.z_in_d = yes("z_in_d");
  spec.exact = yes("exact");
  spec.nan_a = line.integer("nan_a", 0, 0, 1 << 20);
  spec.nan_b = line.integer("nan_b", 0, 0, 1 << 20);
  spec.inf_a = line.integer("inf_a", 0, 0, 1 << 20);
  spec.judged = line.integer("judged", 0, 0, 1 << 20);
  spec.repeat = line.integer("repeat", 1, 1, 100);
  spec.kernel = line.word("kernel", "");
  spec.expect = line.word("expect", "");
  spec.want_d = line.numbers("want_d");
  line.finish();
  check_special(line, spec);
  check_in_place(line, spec);
  return spec;
}

std::vector<int64_t> gemm_sizes(const GemmSpec &spec, const GemmTensor &tensor,
                                std::vector<int64_t> last_axes) {
  if (spec.batched && tensor.batches != GemmTensor::kNone)
    last_axes.insert(last_axes.begin(), tensor.batches == GemmTensor::kOne ? 1 : spec.batches);
  return last_axes;
}

namespace {

int64_t batches_of(const GemmSpec &spec, const GemmTensor &tensor) {
  return tensor.batches == GemmTensor::kAll ? spec.batches : 1;
}

// Coordinates of a value: batch, row ("head" in a line) and column ("position"). Axes of `letters` that have stride 0 hold the
// same everywhere.
Elements filled(const GemmSpec &spec, Stream stream, const GemmTensor &tensor, int64_t rows,
                int64_t columns, char row_letter, char column_letter) {
  std::string zero;
  for (const char letter : tensor.place.zero)
    zero += letter == 'b' ? 'b' : letter == row_letter ? 'h' : letter == column_letter ? 's' : '?';
  const int64_t batches = batches_of(spec, tensor);
  Elements elements(tensor.dtype, static_cast<size_t>(batches * rows * columns));
  const auto value = filler(spec.seed, stream, tensor.values, zero, rows, columns, 1);
  size_t at = 0;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        elements.bits[at++] =
            encode_element(tensor.dtype, static_cast<double>(value(b, row, column, 0)));
  return elements;
}

// Between 1/2 and 2, or powers of two: 2^(i mod 4) for A, 2^-(i mod 3) for B.
Elements factors(const GemmSpec &spec, Stream stream, const GemmTensor &tensor, int64_t count) {
  const auto same_along = [&](const char *letters) {
    return tensor.place.zero.find_first_of(letters) != std::string::npos;
  };
  const int64_t batches = batches_of(spec, tensor);
  Elements elements(FLYDSL_AOT_FP32, static_cast<size_t>(batches * count));
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = same_along("mn") ? 0 : i;
      Random random = random_at(spec.seed, stream, (same_along("b") ? 0 : b) * count + row);
      const double power =
          stream == kADescale ? static_cast<double>(row % 4) : -static_cast<double>(row % 3);
      elements.set(static_cast<size_t>(b * count + i),
                   static_cast<float>(std::exp2(spec.powers ? power : 2 * random.uniform() - 1)));
    }
  }
  return elements;
}

// Some elements of a tensor without axes of stride 0 become this.
void put_special(Elements *elements, Random *random, int64_t count, double value) {
  for (int64_t i = 0; i < count && !elements->bits.empty(); ++i) {
    const auto at = static_cast<size_t>(random->below(static_cast<int64_t>(elements->bits.size())));
    const bool negative = random->chance(0.5);
    elements->bits[at] = std::isinf(value) && elements->dtype == FLYDSL_AOT_E5M2
                             ? (negative ? 0xfcu : 0x7cu)
                             : encode_element(elements->dtype, negative ? -value : value);
  }
}

}  // namespace

GemmNumbers gemm_numbers(const GemmSpec &spec) {
  GemmNumbers numbers;
  numbers.a = filled(spec, kA, spec.a, spec.m, spec.k, 'm', 'k');
  numbers.b = filled(spec, kB, spec.b, spec.k, spec.n, 'k', 'n');
  if (spec.c.present) numbers.c = filled(spec, kC, spec.c, spec.m, spec.n, 'm', 'n');
  if (spec.residual.present)
    numbers.residual = filled(spec, kResidual, spec.residual, spec.m, spec.n, 'm', 'n');
  if (spec.z.present) numbers.z = filled(spec, kZ, spec.z, spec.m, spec.n, 'm', 'n');
  if (spec.bias_m.present) numbers.bias_m = filled(spec, kBiasM, spec.bias_m, 1, spec.m, '-', 'm');
  if (spec.bias_n.present) numbers.bias_n = filled(spec, kBiasN, spec.bias_n, 1, spec.n, '-', 'n');
  if (spec.a_descale.present)
    numbers.a_descale = factors(spec, kADescale, spec.a_descale, spec.a_descale_one ? 1 : spec.m);
  if (spec.b_descale.present)
    numbers.b_descale = factors(spec, kBDescale, spec.b_descale, spec.b_descale_one ? 1 : spec.n);
  if (spec.d_scale.present) numbers.d_scale = filled(spec, kDScale, spec.d_scale, 1, 1, '-', '-');
  Random random = random_at(spec.seed, kSpecial);
  put_special(&numbers.a, &random, spec.nan_a, NAN);
  put_special(&numbers.a, &random, spec.inf_a, INFINITY);
  put_special(&numbers.b, &random, spec.nan_b, NAN);
  return numbers;
}

}  // namespace flydsl::verify
