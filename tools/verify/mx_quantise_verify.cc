// Cases of mx_quantise: lines, the oracle of include/flydsl_aot/mx_quantise.h, the verdict: every byte is that of the definition.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/verify/fuzz_line.h"
#include "tools/verify/mx_format.h"
#include "tools/verify/mx_quantise_case.h"
#include "tools/verify/operator_call.h"
#include "tools/verify/philox.h"

namespace flydsl::verify {
namespace {

constexpr flydsl_aot_dtype kMx[] = {FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2, FLYDSL_AOT_E2M1X2};
constexpr flydsl_aot_dtype kReals[] = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16, FLYDSL_AOT_FP32};

class Line : public FuzzLine {
 public:
  explicit Line(uint64_t seed) : FuzzLine(seed) {
    set("dtype", one_of({"bf16", "fp16", "fp32"}));
    set("out", one_of({"e4m3", "e5m2", "e2m1"}));
    if (chance(0.3)) number("batch", random().between(1, 4));
    const int64_t k = 32 * (chance(0.7) ? random().between(1, 12) : random().between(1, 160));
    number("k", k);
    number("m", random().between(1, k > 1000 ? 9 : 70));
    if (chance(0.4)) set("scales", "shuffled");
    if (chance(0.45)) {
      set("rounding", "stochastic");
      set("random_seed", std::to_string(random().bits()));
      if (chance(0.5)) set("random_offset", std::to_string(random().bits()));
    }
    if (chance(0.4))
      set("x", one_of({"bits", "int", "0", "normal*1000", "normal*0.0001", "1.9375"}));
    if (chance(0.5)) number("spread", random().between(1, 120));
    if (chance(0.15)) number("nan_x", 1);
    if (chance(0.15)) number("inf_x", 1);
    place("x", {"random", "random16", "slack", "offset:", "pitch:"});
    place("out", {"random", "random16", "offset:", "pitch:"});
    place("scale", {"offset:"});
    if (chance(0.2)) set("scale_order", "along_rows");
  }
};

Elements numbers_of(const MxQuantiseSpec &spec) {
  const int64_t rows = std::max<int64_t>(1, spec.batches) * spec.m;
  Elements x(spec.dtype, static_cast<size_t>(rows * spec.k));
  const auto value = filler(spec.seed, 1, spec.x, "", 1, rows, spec.k);
  const uint32_t bits = flydsl_aot_dtype_bytes(spec.dtype) == 4 ? ~0u : 0xffff;
  for (int64_t i = 0; i < rows * spec.k; ++i) {
    const auto at = static_cast<size_t>(i);
    if (spec.any_bits) {
      Random random = random_at(spec.seed, 2, i);
      do {
        x.bits[at] = static_cast<uint32_t>(random.bits()) & bits;
      } while (!std::isfinite(x[at]));
      continue;
    }
    const double power =
        std::floor(spec.spread * (2 * random_at(spec.seed, 3, i / kMxBlock).uniform() - 1));
    x.set(at, static_cast<float>(
                  std::ldexp(value(0, 0, i / spec.k, i % spec.k), static_cast<int>(power))));
  }
  Random random(spec.seed * 31 + 4);
  for (int64_t n = 0; n < spec.nan_x + spec.inf_x && !x.bits.empty(); ++n)
    x.set(static_cast<size_t>(random.below(static_cast<int64_t>(x.bits.size()))),
          n < spec.nan_x       ? NAN
          : random.chance(0.5) ? INFINITY
                               : -INFINITY);
  return x;
}

struct MxFormat {
  int mantissa, least_exponent, largest_exponent;
};
MxFormat format_of(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_E4M3   ? MxFormat{3, -6, 8}
         : dtype == FLYDSL_AOT_E5M2 ? MxFormat{2, -14, 15}
                                    : MxFormat{1, 0, 2};
}

double rounded_by_chance(double value, const MxFormat &format, uint32_t word) {
  if (value == 0) return value;
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const double unit = std::ldexp(1.0, exponent - format.mantissa);
  const double fixed = std::floor(std::fabs(value) / unit * 0x1p20) + (word >> 12);
  return std::copysign(std::floor(fixed * 0x1p-20) * unit, value);
}

// Codes, one a byte, and scales, both in the order of x's axes.
void quantise(const MxQuantiseSpec &spec, const Elements &x, std::vector<uint8_t> *codes,
              std::vector<uint8_t> *scales) {
  const MxFormat format = format_of(spec.out_dtype);
  codes->resize(x.bits.size());
  scales->resize(x.bits.size() / kMxBlock);
  for (size_t block = 0; block < scales->size(); ++block) {
    const size_t first = block * kMxBlock;
    double largest = 0;
    bool finite = true;
    for (size_t i = first; i < first + kMxBlock; ++i) {
      finite &= std::isfinite(x[i]);
      largest = std::max(largest, std::fabs(x[i]));
    }
    const int exponent = largest == 0 ? -1000 : std::ilogb(largest) - format.largest_exponent;
    const uint8_t scale =
        finite ? static_cast<uint8_t>(std::clamp(exponent + 127, 0, 254)) : uint8_t{255};
    (*scales)[block] = scale;
    for (size_t i = first; i < first + kMxBlock; ++i) {
      if (!finite) {
        (*codes)[i] = is_packed(spec.out_dtype) ? 0 : 0x7f;
        continue;
      }
      double value = x[i] / e8m0_to_double(scale);
      if (spec.rounding == FLYDSL_AOT_ROUND_STOCHASTIC) {
        const uint64_t count = spec.random_offset + i / 4;
        const auto words = philox_4x32_10(
            {static_cast<uint32_t>(spec.random_seed),
             static_cast<uint32_t>(spec.random_seed >> 32)},
            {static_cast<uint32_t>(count), static_cast<uint32_t>(count >> 32), 0, 0});
        value = rounded_by_chance(value, format, words[i % 4]);
      }
      (*codes)[i] = mx_encoded(spec.out_dtype, value);
    }
  }
}

}  // namespace

MxQuantiseSpec parse_mx_quantise_spec(const std::string &text) {
  CaseLine line(text);
  MxQuantiseSpec spec;
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  constexpr int64_t kMost = int64_t{1} << 40;
  spec.batches = line.integer("batch", 0, 0, kMost);
  spec.m = line.integer("m", 1, 0, kMost);
  spec.k = line.integer("k", 32, 0, kMost);
  spec.dtype = kReals[line.choice("dtype", 0, {"bf16", "fp16", "fp32"})];
  spec.out_dtype = kMx[line.choice("out", 0, {"e4m3", "e5m2", "e2m1"})];
  spec.layout =
      static_cast<flydsl_aot_scale_layout>(line.choice("scales", 0, {"plain", "shuffled"}));
  spec.rounding =
      static_cast<flydsl_aot_rounding>(line.choice("rounding", 0, {"nearest", "stochastic"}));
  spec.random_seed = line.bits("random_seed", 7);
  spec.random_offset = line.bits("random_offset", 0);
  spec.any_bits = line.word("x", "") == "bits";
  if (!spec.any_bits) spec.x = parse_values(line, "x");
  spec.spread = line.number("spread", 0);
  spec.nan_x = line.integer("nan_x", 0, 0, 1000);
  spec.inf_x = line.integer("inf_x", 0, 0, 1000);
  spec.x_place = parse_placement(line, "x", "brk");
  spec.out_place = parse_placement(line, "out", "");
  spec.scale_place = parse_placement(line, "scale", "");
  spec.scales_along_rows = line.choice("scale_order", 0, {"rows", "along_rows"}) == 1;
  spec.expect = line.word("expect", "");
  line.finish();
  return spec;
}

std::string fuzz_mx_quantise_line(uint64_t seed) {
  return Line(seed).text();
}

Outcome verify_mx_quantise_case(flydsl_aot_handle *handle, const MxQuantiseSpec &spec) {
  Outcome outcome;
  const Elements x = numbers_of(spec);
  const bool shuffled = spec.layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  const bool packed = is_packed(spec.out_dtype), along_rows = spec.scales_along_rows && !shuffled;
  const int64_t blocks = spec.k / kMxBlock, stored = packed ? spec.k / 2 : spec.k;
  const auto batched = [&](int64_t rows, int64_t columns) {
    std::vector<int64_t> sizes = {rows, columns};
    if (spec.batches) sizes.insert(sizes.begin(), spec.batches);
    return sizes;
  };
  OperatorCall call(handle, spec.seed);
  flydsl_aot_mx_quantise_params params{};
  const int free_axes = spec.batches ? 2 : 1;
  params.scale_layout = spec.layout;
  params.rounding = spec.rounding;
  params.seed = spec.random_seed;
  params.offset = spec.random_offset;
  params.x = call.input("x", x, batched(spec.m, spec.k), spec.x_place, free_axes).tensor();
  DeviceTensor &out =
      call.output("out", spec.out_dtype, batched(spec.m, stored), spec.out_place, free_axes);
  params.out = out.tensor();
  if (packed) params.out.sizes[params.out.rank - 1] *= 2;
  const int64_t rows = shuffled ? (spec.m + 31) / 32 * 32 : spec.m;
  const int64_t columns = shuffled ? (blocks + 7) / 8 * 8 : blocks;
  PlacementRule scale_rule = spec.scale_place;
  if (shuffled && scale_rule.kind != PlacementRule::kOffset) scale_rule = {};
  DeviceTensor &scale =
      call.output("scale", FLYDSL_AOT_E8M0,
                  along_rows ? batched(columns, rows) : batched(rows, columns), scale_rule, 0);
  params.scale = scale.tensor();
  if (along_rows) {
    const int last = params.scale.rank - 1;
    std::swap(params.scale.sizes[last], params.scale.sizes[last - 1]);
    std::swap(params.scale.strides[last], params.scale.strides[last - 1]);
  }

  CallResult result;
  call.run(&params, flydsl_aot_mx_quantise_query, flydsl_aot_mx_quantise, &result);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  std::vector<uint8_t> codes, scales;
  quantise(spec, x, &codes, &scales);
  const std::vector<uint8_t> bytes = packed ? packed_pairs(codes) : codes;
  const Elements got = Elements::taken_from(out), got_scales = Elements::taken_from(scale);
  for (size_t i = 0; i < bytes.size() && outcome.fault.empty(); ++i) {
    if (got.bits[i] != bytes[i])
      outcome.fault = "byte " + std::to_string(i) + " of out is " + std::to_string(got.bits[i]) +
                      ", not " + std::to_string(bytes[i]);
  }
  // Padding must keep its poison.
  std::vector<uint8_t> wanted(got_scales.bits.size(), static_cast<uint8_t>(kOutputPoison));
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto block = static_cast<int64_t>(i) % blocks, row = static_cast<int64_t>(i) / blocks;
    const int64_t batch = row / spec.m, in_batch = row % spec.m;
    const int64_t place = shuffled     ? shuffled_scale_place(in_batch, block, columns)
                          : along_rows ? block * rows + in_batch
                                       : in_batch * columns + block;
    wanted[static_cast<size_t>(batch * rows * columns + place)] = scales[i];
  }
  for (size_t i = 0; i < wanted.size() && outcome.fault.empty(); ++i)
    if (got_scales.bits[i] != wanted[i])
      outcome.fault = "byte " + std::to_string(i) + " of scale is " +
                      std::to_string(got_scales.bits[i]) + ", not " + std::to_string(wanted[i]);
  outcome.numbers = "equal " + result.kernel;
  return outcome;
}

}  // namespace flydsl::verify
