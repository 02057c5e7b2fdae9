// Lines of cases of rms_norm_backward and layer_norm_backward: read, made up at random; their numbers.
#include <algorithm>

#include "tools/verify/fuzz_line.h"
#include "tools/verify/norm_backward_case.h"
#include "tools/verify/row_line.h"

namespace flydsl::verify {
namespace {

enum Stream : uint64_t { kX = 1, kDout, kWeight, kDsum, kSpecial };

class Line : public FuzzLine {
 public:
  Line(uint64_t seed, bool centred) : FuzzLine(seed) {
    set("dtype", one_of({"bf16", "fp16", "fp32"}));
    shape();
    const bool dx = chance(0.85), weight = chance(0.7), dsum = dx && chance(0.4);
    if (weight) set("weight", one_of({"same", "same", "fp32", "fp16", "bf16"}));
    if (weight && chance(0.3)) set("gemma", "yes");
    if (dsum) set("dsum", "yes");
    if (!dx) set("dx", "none");
    if (dx && chance(0.4)) set("dx", one_of({"dout", "x", dsum ? "dsum" : "dout"}));
    const bool dweight = chance(0.7) || (!dx && !centred);
    if (dweight) set("dweight", one_of({"same", "same", "fp32", "fp16", "bf16"}));
    const bool dbias = centred && (chance(0.6) || (!dx && !dweight));
    if (dbias) set("dbias", one_of({"same", "same", "fp32", "fp16", "bf16"}));
    set("eps", one_of({"1e-6", "1e-5", "0.01"}));
    if (chance(0.3))
      set("x", one_of({"normal*100", "normal*0.001", "int", "0", "7", "first:1000"}));
    if (chance(0.3)) set("d", one_of({"normal*100", "normal*0.001", "int", "0", "1"}));
    if (centred && chance(0.3)) set("level", one_of({"1000", "-30000", "1", "0.01"}));
    if (chance(0.08)) number("nan_x", 1);
    if (chance(0.08)) number("nan_dout", 1);
    if (chance(0.05)) number("inf_dout", 1);
    for (const char *tensor : {"x", "dout", "weight", "dsum"})
      place(tensor, {"random", "random16", "random16", "slack", "offset:", "pitch:"});
    for (const char *tensor : {"rstd", "dx", "dweight"})
      place(tensor, {"random", "random16", "random16", "offset:", "pitch:"});
    if (centred) {
      place("mean", {"random", "random16", "offset:", "pitch:"});
      place("dbias", {"random", "random16", "offset:", "pitch:"});
    }
    if (chance(0.1)) number("repeat", 2);
  }

 private:
  void shape() {
    // Round the ends of what instances hold, of multiples of 16 bytes half of the time.
    int64_t length = one_of_numbers({1, 2, 31, 64, 128, 256, 500, 512, 1024, 2048, 4096, 8192});
    if (chance(0.1)) length = one_of_numbers({9000, 16384, 33000, 40000});
    if (chance(0.5)) length = std::max<int64_t>(1, length + random().between(-9, 9));
    number("n", length);
    int64_t most = length > 6000 ? 20 : length > 600 ? 40 : 100;
    // Several rows of a team in a slot.
    if (chance(0.1) && length < 600) most = 400000 / length;
    if (chance(0.3)) number("m0", random().between(1, 4));
    number("m", random().between(1, most));
  }
};

}  // namespace

NormBackwardSpec parse_norm_backward_spec(const std::string &text, bool centred) {
  CaseLine line(text);
  NormBackwardSpec spec;
  spec.centred = centred;
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  spec.outer = line.integer("m0", 0, 0, int64_t{1} << 32);
  spec.rows = line.integer("m", 1, 0, int64_t{1} << 40);
  spec.length = line.integer("n", 1, 0, int64_t{1} << 31);
  spec.dtype = real_dtype(line, "dtype");
  spec.weight_dtype = optional_dtype(line, "weight", spec.dtype);
  spec.dweight_dtype = optional_dtype(line, "dweight", spec.dtype);
  if (centred) {
    spec.dbias_dtype = optional_dtype(line, "dbias", spec.dtype);
    spec.level = line.number("level", 0);
    spec.mean_place = input_place(line, "mean");
    spec.dbias_place = parse_placement(line, "dbias", "");
  }
  spec.unit_offset = line.choice("gemma", 0, {"no", "yes"}) == 1;
  spec.dsum = line.choice("dsum", 0, {"no", "yes"}) == 1;
  spec.dx = static_cast<GradientPlace>(line.choice("dx", 0, {"own", "none", "dout", "x", "dsum"}));
  spec.eps = static_cast<float>(line.number("eps", 1e-6));
  spec.x = parse_values(line, "x");
  spec.dout = parse_values(line, "d");
  spec.weight = parse_values(line, "w");
  spec.dsum_values = parse_values(line, "s");
  spec.x_place = input_place(line, "x");
  spec.dout_place = input_place(line, "dout");
  spec.weight_place = input_place(line, "weight");
  spec.dsum_place = input_place(line, "dsum");
  spec.rstd_place = input_place(line, "rstd");
  spec.dx_place = parse_placement(line, "dx", "");
  spec.dweight_place = parse_placement(line, "dweight", "");
  spec.nan_x = line.integer("nan_x", 0, 0, 1 << 20);
  spec.nan_dout = line.integer("nan_dout", 0, 0, 1 << 20);
  spec.inf_dout = line.integer("inf_dout", 0, 0, 1 << 20);
  spec.repeat = line.integer("repeat", 1, 1, 100);
  spec.expect = line.word("expect", "");
  spec.want_dx = line.numbers("want_dx");
  spec.want_dweight = line.numbers("want_dweight");
  line.finish();
  if (spec.dx == GradientPlace::kDsum && !spec.dsum) line.fail("dx", "needs dsum=yes");
  return spec;
}

std::string fuzz_rms_norm_backward_line(uint64_t seed) {
  return Line(seed, false).text();
}
std::string fuzz_layer_norm_backward_line(uint64_t seed) {
  return Line(seed, true).text();
}

NormBackwardNumbers norm_backward_numbers(const NormBackwardSpec &spec) {
  NormBackwardNumbers numbers;
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
    numbers.x.set(i, static_cast<float>(numbers.x[i] + spec.level));
  fill(numbers.dout, spec.dtype, kDout, spec.dout, rows);
  if (spec.dsum) fill(numbers.dsum, spec.dtype, kDsum, spec.dsum_values, rows);
  if (spec.weight_dtype != FLYDSL_AOT_DTYPE_INVALID)
    fill(numbers.weight, spec.weight_dtype, kWeight, spec.weight, 1);
  Random random(spec.seed * 31 + kSpecial);
  const auto put = [&](Elements &elements, int64_t count, bool infinite) {
    for (int64_t i = 0; i < count && !elements.bits.empty(); ++i) {
      const auto at = random.below(static_cast<int64_t>(elements.bits.size()));
      elements.set(static_cast<size_t>(at), !infinite            ? NAN
                                            : random.chance(0.5) ? INFINITY
                                                                 : -INFINITY);
    }
  };
  put(numbers.x, spec.nan_x, false);
  put(numbers.dout, spec.nan_dout, false);
  put(numbers.dout, spec.inf_dout, true);

  numbers.rstd = numbers.mean = Elements(FLYDSL_AOT_FP32, static_cast<size_t>(rows));
  const auto length = static_cast<size_t>(spec.length);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    double sum = 0, squares = 0;
    for (size_t n = 0; n < length; ++n) sum += numbers.x[row * length + n];
    const double mean = spec.centred ? sum / static_cast<double>(length) : 0;
    for (size_t n = 0; n < length; ++n) {
      const double deviation = numbers.x[row * length + n] - mean;
      squares += deviation * deviation;
    }
    // As the forward pass has it: fp32 sums overflow.
    if (squares > largest_number(FLYDSL_AOT_FP32)) squares = INFINITY;
    const double variance = squares / static_cast<double>(length);
    numbers.mean.set(row, static_cast<float>(mean));
    numbers.rstd.set(row,
                     static_cast<float>(1 / std::sqrt(variance + static_cast<double>(spec.eps))));
  }
  return numbers;
}

}  // namespace flydsl::verify
