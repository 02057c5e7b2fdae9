// Lines of cases of grouped_gemm: read; their numbers.
#include <algorithm>
#include <cmath>

#include "tools/verify/grouped_gemm_case.h"

namespace flydsl::verify {
namespace {

constexpr flydsl_aot_dtype kReals[] = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16, FLYDSL_AOT_FP32};
constexpr flydsl_aot_dtype kDtypes[] = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16, FLYDSL_AOT_FP32,
                                        FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2};
constexpr int64_t kMostSize = int64_t{1} << 24, kMostGroups = 1 << 20;
enum Stream : uint64_t {
  kA = 1,
  kB,
  kBias,
  kSpecial,
  kOffsets,
  kRowFactor,
  kColumnFactor,
  kAScale,
  kBScale
};

GroupedOperand read_operand(CaseLine &line, const std::string &name, const std::string &axes,
                            const std::string &swapped, bool input) {
  GroupedOperand operand;
  operand.place = parse_placement(line, name, input ? "g" + axes : "");
  operand.swapped = line.choice(name + "_order", 0, {axes, swapped}) == 1;
  if (!input) return operand;
  if (!operand.place.zero.empty()) line.fail(name + "_zero", "is not taken here");
  operand.any_bits = line.word(name, "") == "bits";
  if (!operand.any_bits) operand.values = parse_values(line, name);
  operand.nan = line.integer("nan_" + name, 0, 0, 1 << 20);
  operand.inf = line.integer("inf_" + name, 0, 0, 1 << 20);
  return operand;
}

void read_scales(CaseLine &line, const std::string &name, flydsl_aot_scale_layout layout,
                 GroupedOperand *operand) {
  const std::string scale = name + "_scale", key = name + "_scales";
  operand->scale_order.layout = layout;
  operand->scale_order.along_rows = line.choice(scale + "_order", 0, {"rows", "along_rows"}) == 1;
  operand->scale_order.place = parse_placement(line, scale, "grk");
  if (line.has(key)) {
    const std::vector<std::string> range = split(line.word(key, ""), ':');
    if (range.size() != 2) line.fail(key, "must be LOWEST:HIGHEST, bytes");
    operand->scale_low = line.to_integer(key, range[0], 0, 255);
    operand->scale_high = line.to_integer(key, range[1], operand->scale_low, 255);
  }
  operand->nan_scales = line.integer("nan_" + scale, 0, 0, 1000);
  operand->zero_scales = line.integer("zero_" + scale, 0, 0, 1000);
}

// "3,3,10", "even:GROUPS" of equal lengths, "random:GROUPS".
std::vector<int64_t> read_offsets(CaseLine &line, const GroupedGemmSpec &spec) {
  const std::string text = line.word("offsets", "even:1");
  std::vector<int64_t> offsets;
  const bool even = text.starts_with("even:"), random = text.starts_with("random:");
  if (!even && !random) {
    for (const std::string &part : split(text, ','))
      offsets.push_back(line.to_integer("offsets", part, INT64_MIN, INT64_MAX));
    return offsets;
  }
  const int64_t groups =
      line.to_integer("offsets", text.substr(text.find(':') + 1), 0, kMostGroups);
  const int64_t size = spec.size_of_axis();
  Random at = random_at(spec.seed, kOffsets);
  for (int64_t group = 1; group <= groups; ++group)
    offsets.push_back(even ? size * group / groups : at.between(0, size));
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

// A power of two from 2^-8 to 2^8 for each row or column.
float factor_of(const GroupedGemmSpec &spec, Stream stream, int64_t place) {
  return spec.varied
             ? std::ldexp(1.0f,
                          static_cast<int>(random_at(spec.seed, stream, place).between(-8, 8)))
             : 1.0f;
}

void put_special(const GroupedOperand &operand, Random &random, Elements *elements) {
  const auto count = static_cast<int64_t>(elements->bits.size());
  for (int64_t i = 0; i < operand.nan + operand.inf && count > 0; ++i) {
    const float infinity = random.chance(0.5) ? INFINITY : -INFINITY;
    elements->set(static_cast<size_t>(random.below(count)), i < operand.nan ? NAN : infinity);
  }
}

// A finite number of an 8-bit type, each with the same chance.
uint32_t any_code(flydsl_aot_dtype dtype, Random random) {
  for (;;) {
    const auto code = static_cast<uint32_t>(random.bits() & 0xff);
    if (std::isfinite(decoded(dtype, code))) return code;
  }
}

// `outside`: of (row, block), whether no group has any of it.
std::vector<uint8_t> scales_of(const GroupedGemmSpec &spec, const GroupedOperand &operand,
                               Stream stream, int64_t matrices, int64_t rows, const auto &outside) {
  const int64_t blocks = spec.blocks();
  std::vector<uint8_t> scales(static_cast<size_t>(matrices * rows * blocks));
  for (size_t s = 0; s < scales.size(); ++s) {
    const auto at = static_cast<int64_t>(s);
    scales[s] =
        outside(at / blocks % rows, at % blocks)
            ? 255
            : static_cast<uint8_t>(
                  random_at(spec.seed, stream, at).between(operand.scale_low, operand.scale_high));
  }
  Random random(spec.seed * 31 + stream);
  for (int64_t n = 0; n < operand.zero_scales + operand.nan_scales && !scales.empty(); ++n)
    scales[static_cast<size_t>(random.below(static_cast<int64_t>(scales.size())))] =
        n < operand.zero_scales ? 0 : 255;
  return scales;
}

}  // namespace

GroupedGemmSpec parse_grouped_gemm_spec(const std::string &text) {
  CaseLine line(text);
  GroupedGemmSpec spec;
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  const int dtype = line.choice("dtype", 0, {"bf16", "fp16", "fp32", "e4m3", "e5m2"});
  const int b_dtype = line.choice("b_dtype", dtype, {"bf16", "fp16", "fp32", "e4m3", "e5m2"});
  const flydsl_aot_dtype same = dtype < 3 ? kReals[dtype] : FLYDSL_AOT_BF16;
  const flydsl_aot_dtype outs[] = {same, kReals[0], kReals[1], kReals[2]};
  spec.d_dtype = outs[line.choice("out", 0, {"same", "bf16", "fp16", "fp32"})];
  spec.axis = static_cast<SharedAxis>(line.choice("axis", 1, {"none", "rows", "columns", "k"}));
  spec.m = line.integer("m", 1, 0, kMostSize);
  spec.n = line.integer("n", 1, 0, kMostSize);
  spec.k = line.integer("k", 1, 0, kMostSize);
  if (spec.axis == SharedAxis::kNone) {
    spec.groups = line.integer("groups", 1, 0, kMostGroups);
  } else {
    spec.offsets = read_offsets(line, spec);
    spec.groups = static_cast<int64_t>(spec.offsets.size());
  }
  spec.wide_offsets = line.choice("offsets_dtype", 0, {"int32", "int64"}) == 1;
  for (const int64_t offset : spec.offsets)
    if (!spec.wide_offsets && offset != static_cast<int32_t>(offset))
      line.fail("offsets", "needs offsets_dtype=int64");
  spec.offsets_place = parse_placement(line, "offsets", "g");
  spec.a = read_operand(line, "a", "mk", "km", true);
  spec.b = read_operand(line, "b", "kn", "nk", true);
  spec.d = read_operand(line, "d", "mn", "nm", false);
  spec.a.dtype = kDtypes[dtype];
  spec.b.dtype = kDtypes[b_dtype];
  const auto layout =
      static_cast<flydsl_aot_scale_layout>(line.choice("scales", 0, {"plain", "shuffled"}));
  read_scales(line, "a", layout, &spec.a);
  read_scales(line, "b", layout, &spec.b);
  const flydsl_aot_dtype biases[] = {FLYDSL_AOT_DTYPE_INVALID, kReals[0], kReals[1], kReals[2]};
  spec.bias_dtype = biases[line.choice("bias_dtype", 0, {"none", "bf16", "fp16", "fp32"})];
  spec.bias_of_groups = line.choice("bias_axes", 0, {"n", "gn"}) == 1;
  spec.bias = parse_values(line, "bias");
  spec.bias_place = parse_placement(line, "bias", "gn");
  const auto yes = [&](const char *key) { return line.choice(key, 0, {"no", "yes"}) == 1; };
  spec.varied = yes("varied");
  spec.nan_outside = yes("nan_outside");
  spec.judged = line.integer("judged", 0, 0, 1 << 20);
  spec.kernel = line.word("kernel", "");
  spec.repeat = line.integer("repeat", 1, 1, 100);
  spec.expect = line.word("expect", "");
  spec.want = line.numbers("want");
  line.finish();
  return spec;
}

std::vector<int64_t> ends_of_groups(const GroupedGemmSpec &spec) {
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const int64_t offset : spec.offsets) {
    end = std::max(end, offset);
    ends.push_back(std::min(end, spec.size_of_axis()));
  }
  return ends;
}

GroupedGemmNumbers grouped_gemm_numbers(const GroupedGemmSpec &spec) {
  const std::vector<int64_t> ends = ends_of_groups(spec);
  const int64_t used = ends.empty() ? 0 : ends.back();
  const auto outside = [&](SharedAxis axis, int64_t at) {
    return spec.nan_outside && spec.axis == axis && at >= used;
  };
  GroupedGemmNumbers numbers;
  const int64_t a_groups = spec.a_has_groups() ? spec.groups : 1;
  const int64_t b_groups = spec.b_has_groups() ? spec.groups : 1;
  numbers.a = Elements(spec.a.dtype, static_cast<size_t>(a_groups * spec.m * spec.k));
  const auto a = filler(spec.seed, kA, spec.a.values, "", 1, spec.m, spec.k);
  size_t i = 0;
  for (int64_t g = 0; g < a_groups; ++g)
    for (int64_t row = 0; row < spec.m; ++row) {
      const float factor = factor_of(spec, kRowFactor, g * spec.m + row);
      for (int64_t k = 0; k < spec.k; ++k, ++i) {
        if (outside(SharedAxis::kRows, row) || outside(SharedAxis::kK, k))
          numbers.a.set(i, NAN);
        else if (spec.a.any_bits)
          numbers.a.bits[i] =
              any_code(spec.a.dtype, random_at(spec.seed, kA, static_cast<int64_t>(i)));
        else
          numbers.a.set(i, factor * a(g, 0, row, k));
      }
    }
  numbers.b = Elements(spec.b.dtype, static_cast<size_t>(b_groups * spec.k * spec.n));
  const auto b = filler(spec.seed, kB, spec.b.values, "", 1, spec.k, spec.n);
  i = 0;
  for (int64_t g = 0; g < b_groups; ++g)
    for (int64_t k = 0; k < spec.k; ++k)
      for (int64_t column = 0; column < spec.n; ++column, ++i) {
        if (outside(SharedAxis::kColumns, column) || outside(SharedAxis::kK, k))
          numbers.b.set(i, NAN);
        else if (spec.b.any_bits)
          numbers.b.bits[i] =
              any_code(spec.b.dtype, random_at(spec.seed, kB, static_cast<int64_t>(i)));
        else
          numbers.b.set(i,
                        factor_of(spec, kColumnFactor, g * spec.n + column) * b(g, 0, k, column));
      }
  if (spec.has_scales()) {
    const auto outside_of = [&](SharedAxis axis) {
      return [&outside, axis](int64_t row, int64_t block) {
        return outside(axis, row) || outside(SharedAxis::kK, 32 * block);
      };
    };
    numbers.a_scale =
        scales_of(spec, spec.a, kAScale, a_groups, spec.m, outside_of(SharedAxis::kRows));
    numbers.b_scale =
        scales_of(spec, spec.b, kBScale, b_groups, spec.n, outside_of(SharedAxis::kColumns));
  }
  if (spec.bias_dtype != FLYDSL_AOT_DTYPE_INVALID) {
    const int64_t groups = spec.bias_of_groups ? spec.groups : 1;
    numbers.bias = Elements(spec.bias_dtype, static_cast<size_t>(groups * spec.n));
    const auto bias = filler(spec.seed, kBias, spec.bias, "", 1, groups, spec.n);
    for (int64_t at = 0; at < groups * spec.n; ++at)
      numbers.bias.set(static_cast<size_t>(at), bias(0, 0, at / spec.n, at % spec.n));
  }
  Random random = random_at(spec.seed, kSpecial);
  put_special(spec.a, random, &numbers.a);
  put_special(spec.b, random, &numbers.b);
  return numbers;
}

}  // namespace flydsl::verify
