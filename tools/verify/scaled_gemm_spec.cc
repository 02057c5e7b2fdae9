// Lines of cases of scaled_gemm: read, made up at random; their numbers.
#include <algorithm>

#include "tools/verify/fuzz_line.h"
#include "tools/verify/scaled_gemm_case.h"

namespace flydsl::verify {
namespace {

constexpr flydsl_aot_dtype kMx[] = {FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2, FLYDSL_AOT_E2M1X2};
constexpr flydsl_aot_dtype kReals[] = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16, FLYDSL_AOT_FP32};
enum Stream : uint64_t { kA = 1, kB, kScaleA, kScaleB, kBias, kSpecial };

class Line : public FuzzLine {
 public:
  explicit Line(uint64_t seed) : FuzzLine(seed) {
    const bool fp4 = chance(0.4);
    if (fp4) {
      set("a_dtype", "e2m1");
      set("b_dtype", "e2m1");
    } else {
      set("a_dtype", one_of({"e4m3", "e5m2"}));
      set("b_dtype", one_of({"e4m3", "e5m2"}));
    }
    if (chance(0.3)) number("batch", random().between(1, 3));
    const bool large = chance(0.3);  // several tiles of the fast instances
    const auto extent = [&] {
      return large ? one_of_numbers({255, 256, 257, 300, 500, 513})
                   : edge(random().between(1, 300));
    };
    number("m", extent());
    number("n", extent());
    // Whole slabs half of the time.
    const int64_t slab = fp4 ? 256 : 128;
    number("k", chance(0.6) ? slab * random().between(1, large ? 4 : 8)
                            : 32 * random().between(1, large ? 20 : 40));
    if (chance(0.45)) set("scales", "shuffled");
    set("d_dtype", one_of({"bf16", "bf16", "fp16", "fp32"}));
    if (chance(0.4)) set("bias", one_of({"bf16", "fp16", "fp32"}));
    operand("a", fp4);
    operand("b", fp4);
    if (chance(0.15)) set("d_order", "nm");
    place("d", {"random", "random16", "slack", "offset:", "pitch:"});
    if (chance(0.1)) number("repeat", 2);
  }

 private:
  int64_t edge(int64_t size) {
    return chance(0.5) ? size
                       : std::max<int64_t>(
                             1, one_of_numbers({16, 32, 64, 128, 256}) + random().between(-1, 1));
  }
  void operand(const std::string &name, bool fp4) {
    if (chance(0.25)) set(name, one_of({"int", "normal*0.1", "bits", "0", "1"}));
    if (chance(0.2)) set(name + "_scales", one_of({"127:127", "100:154", "120:121"}));
    if (!fp4 && chance(0.15)) set(name + "_order", one_of({"along_rows", "strided"}));
    if (chance(0.15)) set(name + "_scale_order", "along_rows");
    place(name, {"random", "random16", "random16", "slack", "offset:", "pitch:"});
    place(name + "_scale", {"offset:", "slack"});
    if (chance(0.1)) number("nan_" + name + "_scale", 1);
    if (chance(0.1)) number("zero_" + name + "_scale", random().between(1, 9));
    if (!fp4 && chance(0.1)) number("nan_" + name, 1);
  }
};

void parse_operand(CaseLine &line, const std::string &name, MxOperandSpec *spec) {
  spec->dtype = kMx[line.choice(name + "_dtype", 0, {"e4m3", "e5m2", "e2m1"})];
  spec->batched = line.choice(name + "_batched", 0, {"yes", "no"}) == 0;
  spec->any_bits = line.word(name, "") == "bits";
  if (!spec->any_bits) spec->values = parse_values(line, name);
  spec->order = static_cast<MxOperandSpec::Order>(
      line.choice(name + "_order", 0, {"rows", "along_rows", "strided"}));
  spec->place = parse_placement(line, name, "brk");
  spec->scale_place = parse_placement(line, name + "_scale", "brk");
  spec->scales_along_rows = line.choice(name + "_scale_order", 0, {"rows", "along_rows"}) == 1;
  const std::string key = name + "_scales";
  if (line.has(key)) {
    const std::vector<std::string> range = split(line.word(key, ""), ':');
    if (range.size() != 2) line.fail(key, "must be LOWEST:HIGHEST, bytes");
    spec->scale_low = line.to_integer(key, range[0], 0, 255);
    spec->scale_high = line.to_integer(key, range[1], spec->scale_low, 255);
  }
  spec->nan = line.integer("nan_" + name, 0, 0, 1000);
  spec->inf = line.integer("inf_" + name, 0, 0, 1000);
  spec->nan_scales = line.integer("nan_" + name + "_scale", 0, 0, 1000);
  spec->zero_scales = line.integer("zero_" + name + "_scale", 0, 0, 1000);
  if (spec->nan && is_packed(spec->dtype)) line.fail("nan_" + name, "e2m1 has none");
  if (spec->inf && spec->dtype != FLYDSL_AOT_E5M2) line.fail("inf_" + name, "only e5m2 has any");
}

MxMatrix matrix_of(const ScaledGemmSpec &spec, const MxOperandSpec &operand, int64_t rows,
                   Stream stream, Stream scale_stream) {
  const int64_t batches = operand.batched ? spec.all_batches() : 1;
  MxMatrix matrix;
  matrix.codes.resize(static_cast<size_t>(batches * rows * spec.k));
  matrix.scales.resize(static_cast<size_t>(batches * rows * spec.blocks()));
  const auto value = filler(spec.seed, stream, operand.values, "", 1, rows, spec.k);
  const uint8_t all_codes = is_packed(operand.dtype) ? 0x0f : 0xff;
  size_t i = 0;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t k = 0; k < spec.k; ++k, ++i) {
        uint8_t &code = matrix.codes[i];
        if (operand.any_bits) {
          Random random = random_at(spec.seed, stream, static_cast<int64_t>(i));
          do {
            code = static_cast<uint8_t>(random.bits() & all_codes);
          } while (!std::isfinite(mx_decoded(operand.dtype, code)));
        } else {
          code = mx_encoded(operand.dtype, static_cast<double>(value(batch, 0, row, k)));
        }
      }
  for (size_t s = 0; s < matrix.scales.size(); ++s)
    matrix.scales[s] =
        static_cast<uint8_t>(random_at(spec.seed, scale_stream, static_cast<int64_t>(s))
                                 .between(operand.scale_low, operand.scale_high));
  Random random(spec.seed * 31 + kSpecial + stream);
  const auto any = [&](std::vector<uint8_t> &of) -> uint8_t & {
    return of[static_cast<size_t>(random.below(static_cast<int64_t>(of.size())))];
  };
  if (matrix.codes.empty()) return matrix;
  for (int64_t n = 0; n < operand.nan; ++n) any(matrix.codes) = random.chance(0.5) ? 0x7f : 0xff;
  for (int64_t n = 0; n < operand.inf; ++n) any(matrix.codes) = random.chance(0.5) ? 0x7c : 0xfc;
  for (int64_t n = 0; n < operand.zero_scales; ++n) any(matrix.scales) = 0;
  for (int64_t n = 0; n < operand.nan_scales; ++n) any(matrix.scales) = 255;
  return matrix;
}

}  // namespace

ScaledGemmSpec parse_scaled_gemm_spec(const std::string &text) {
  CaseLine line(text);
  ScaledGemmSpec spec;
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  constexpr int64_t kMost = int64_t{1} << 40;
  spec.batches = line.integer("batch", 0, 0, kMost);
  spec.m = line.integer("m", 1, 0, kMost);
  spec.n = line.integer("n", 1, 0, kMost);
  spec.k = line.integer("k", 32, 0, kMost);
  spec.layout =
      static_cast<flydsl_aot_scale_layout>(line.choice("scales", 0, {"plain", "shuffled"}));
  parse_operand(line, "a", &spec.a);
  parse_operand(line, "b", &spec.b);
  spec.d_dtype = kReals[line.choice("d_dtype", 0, {"bf16", "fp16", "fp32"})];
  constexpr flydsl_aot_dtype kNone = FLYDSL_AOT_DTYPE_INVALID;
  const flydsl_aot_dtype biases[] = {kNone, kReals[0], kReals[1], kReals[2]};
  spec.bias_dtype = biases[line.choice("bias", 0, {"none", "bf16", "fp16", "fp32"})];
  spec.bias_batched = line.choice("bias_batched", 0, {"no", "yes"}) == 1;
  spec.bias_place = parse_placement(line, "bias", "n");
  spec.d_place = parse_placement(line, "d", "");
  spec.d_along_rows = line.choice("d_order", 0, {"mn", "nm"}) == 1;
  spec.exact = line.choice("exact", 0, {"no", "yes"}) == 1;
  spec.judged = line.integer("judged", 0, 0, 1 << 20);
  spec.repeat = line.integer("repeat", 1, 1, 100);
  spec.expect = line.word("expect", "");
  spec.kernel = line.word("kernel", "");
  spec.want_d = line.numbers("want_d");
  line.finish();
  return spec;
}

std::string fuzz_scaled_gemm_line(uint64_t seed) {
  return Line(seed).text();
}

ScaledGemmNumbers scaled_gemm_numbers(const ScaledGemmSpec &spec) {
  ScaledGemmNumbers numbers;
  numbers.a = matrix_of(spec, spec.a, spec.m, kA, kScaleA);
  numbers.b = matrix_of(spec, spec.b, spec.n, kB, kScaleB);
  if (spec.bias_dtype == FLYDSL_AOT_DTYPE_INVALID) return numbers;
  const int64_t count = (spec.bias_batched ? spec.all_batches() : 1) * spec.n;
  numbers.bias = Elements(spec.bias_dtype, static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    numbers.bias.set(static_cast<size_t>(i), 3 * random_at(spec.seed, kBias, i).normal());
  return numbers;
}

}  // namespace flydsl::verify
