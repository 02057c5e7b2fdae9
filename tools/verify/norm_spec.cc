// Lines of cases of rms_norm and layer_norm: read, made up at random; their numbers.
#include "tools/verify/fuzz_line.h"
#include "tools/verify/norm_case.h"
#include "tools/verify/row_line.h"

namespace flydsl::verify {
namespace {

enum Stream : uint64_t { kX = 1, kResidual, kWeight, kSpecial, kBias };

class Line : public FuzzLine {
 public:
  Line(uint64_t seed, bool centred) : FuzzLine(seed) {
    set("dtype", one_of({"bf16", "fp16", "fp32"}));
    shape();
    if (chance(0.75))
      set("weight", one_of({"same", "same", "fp32", "fp16", "bf16"}));
    else
      offset_ = false;
    if (offset_ && chance(0.3)) set("gemma", "yes");
    const bool bias = centred && chance(0.6);
    if (bias) set("bias", one_of({"same", "same", "fp32", "fp16", "bf16"}));
    if (centred && chance(0.5)) set("mean", "yes");
    const bool residual = chance(0.45);
    std::string sum = "none";
    if (residual) {
      set("residual", "yes");
      sum = one_of({"none", "own", "x", "residual", "residual"});
      set("sum", sum);
    }
    const bool quantised = chance(0.35);
    if (quantised) {
      set("out", one_of({"e4m3", "e5m2"}));
      set("scales", one_of({"row", "block"}));
    } else if (sum != "x" && chance(0.25)) {
      set("in_place", "yes");
    }
    if (chance(0.4)) set("rstd", "yes");
    set("eps", one_of({"0", "1e-6", "1e-5", "0.01"}));
    if (chance(0.3))
      set("x",
          one_of({"normal*100", "normal*0.001", "int", "0", "7", "first:1000", "normal*1e-6"}));
    if (centred && chance(0.3)) set("level", one_of({"1000", "-30000", "1", "1e6", "0.01"}));
    if (chance(0.1)) number("nan_x", 1);
    if (chance(0.05)) number("inf_x", 1);
    for (const char *tensor : {"x", "residual", "weight", "bias"}) {
      if (tensor == std::string("residual") && !residual) continue;
      if (tensor == std::string("bias") && !bias) continue;
      place(tensor, {"random", "random16", "random16", "slack", "offset:", "pitch:"});
    }
    for (const char *tensor : {"sum", "out", "scale", "rstd"})
      place(tensor, {"random", "random16", "random16", "offset:", "pitch:"});
    if (centred) place("mean", {"random", "random16", "offset:", "pitch:"});
    if (chance(0.1)) number("repeat", 2);
  }

 private:
  void shape() {
    // Round the ends of what instances hold, of multiples of 16 bytes half of the time.
    int64_t length = one_of_numbers({1, 2, 31, 64, 128, 256, 500, 512, 1024, 2048, 4096, 5120});
    if (chance(0.1)) length = one_of_numbers({8192, 16384, 32768, 33000, 40000});
    if (chance(0.5)) length = std::max<int64_t>(1, length + random().between(-9, 9));
    number("n", length);
    const int64_t most = length > 6000 ? 3 : length > 600 ? 9 : 70;
    if (chance(0.3)) number("m0", random().between(1, 4));
    number("m", random().between(1, most));
  }

  bool offset_ = true;
};

}  // namespace

NormSpec parse_norm_spec(const std::string &text, bool centred) {
  CaseLine line(text);
  NormSpec spec;
  spec.centred = centred;
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  spec.outer = line.integer("m0", 0, 0, int64_t{1} << 32);
  spec.rows = line.integer("m", 1, 0, int64_t{1} << 40);
  spec.length = line.integer("n", 1, 0, int64_t{1} << 31);
  spec.dtype = real_dtype(line, "dtype");
  spec.weight_dtype = optional_dtype(line, "weight", spec.dtype);
  if (centred) {
    spec.bias_dtype = optional_dtype(line, "bias", spec.dtype);
    spec.bias = parse_values(line, "b");
    spec.bias_place = input_place(line, "bias");
    spec.level = line.number("level", 0);
    spec.mean = line.choice("mean", 0, {"no", "yes"}) == 1;
    spec.mean_place = parse_placement(line, "mean", "");
  }
  const flydsl_aot_dtype outs[] = {spec.dtype, FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2};
  spec.out_dtype = outs[line.choice("out", 0, {"same", "e4m3", "e5m2"})];
  const auto yes = [&](const char *key) { return line.choice(key, 0, {"no", "yes"}) == 1; };
  spec.unit_offset = yes("gemma");
  spec.residual = yes("residual");
  spec.sum = static_cast<SumPlace>(line.choice("sum", 0, {"none", "own", "x", "residual"}));
  spec.block_scales = line.choice("scales", 0, {"row", "block"}) == 1;
  spec.rstd = yes("rstd");
  spec.out_in_x = yes("in_place");
  spec.eps = static_cast<float>(line.number("eps", 1e-6));
  spec.x = parse_values(line, "x");
  spec.residual_values = parse_values(line, "r");
  spec.weight = parse_values(line, "w");
  spec.x_place = input_place(line, "x");
  spec.residual_place = input_place(line, "residual");
  spec.weight_place = input_place(line, "weight");
  spec.sum_place = parse_placement(line, "sum", "");
  spec.out_place = parse_placement(line, "out", "");
  spec.scale_place = parse_placement(line, "scale", "");
  spec.rstd_place = parse_placement(line, "rstd", "");
  spec.nan_x = line.integer("nan_x", 0, 0, 1 << 20);
  spec.inf_x = line.integer("inf_x", 0, 0, 1 << 20);
  spec.repeat = line.integer("repeat", 1, 1, 100);
  spec.expect = line.word("expect", "");
  spec.want_out = line.numbers("want_out");
  line.finish();
  if (spec.sum != SumPlace::kNone && !spec.residual) line.fail("sum", "needs residual=yes");
  return spec;
}

std::string fuzz_rms_norm_line(uint64_t seed) {
  return Line(seed, false).text();
}
std::string fuzz_layer_norm_line(uint64_t seed) {
  return Line(seed, true).text();
}

NormNumbers norm_numbers(const NormSpec &spec) {
  NormNumbers numbers;
  const int64_t rows = spec.all_rows();
  const auto fill = [&](Elements &elements, flydsl_aot_dtype dtype, Stream stream,
                        const Values &values, int64_t count) {
    elements = Elements(dtype, static_cast<size_t>(count * spec.length));
    const auto value = filler(spec.seed, stream, values, "", 1, count, spec.length);
    for (int64_t row = 0; row < count; ++row)
      for (int64_t n = 0; n < spec.length; ++n)
        elements.set(static_cast<size_t>(row * spec.length + n), value(0, 0, row, n));
  };
  fill(numbers.x, spec.dtype, kX, spec.x, rows);
  for (size_t i = 0; spec.level != 0 && i < numbers.x.bits.size(); ++i)
    numbers.x.set(i, numbers.x[i] + spec.level);
  if (spec.residual) fill(numbers.residual, spec.dtype, kResidual, spec.residual_values, rows);
  if (spec.weight_dtype != FLYDSL_AOT_DTYPE_INVALID)
    fill(numbers.weight, spec.weight_dtype, kWeight, spec.weight, 1);
  if (spec.bias_dtype != FLYDSL_AOT_DTYPE_INVALID)
    fill(numbers.bias, spec.bias_dtype, kBias, spec.bias, 1);
  Random random(spec.seed * 31 + kSpecial);
  for (int64_t i = 0; i < spec.nan_x + spec.inf_x && !numbers.x.bits.empty(); ++i) {
    const auto place =
        static_cast<size_t>(random.below(static_cast<int64_t>(numbers.x.bits.size())));
    numbers.x.set(place, i < spec.nan_x ? NAN : random.chance(0.5) ? INFINITY : -INFINITY);
  }
  return numbers;
}

}  // namespace flydsl::verify
