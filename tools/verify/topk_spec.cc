// Lines of cases of topk and topk_softmax: read, made up at random; their numbers.
#include "tools/verify/fuzz_line.h"
#include "tools/verify/topk_case.h"

namespace flydsl::verify {
namespace {

constexpr flydsl_aot_dtype kDtypes[] = {FLYDSL_AOT_FP32, FLYDSL_AOT_FP16, FLYDSL_AOT_BF16,
                                        FLYDSL_AOT_INT32};

class Line : public FuzzLine {
 public:
  explicit Line(uint64_t seed) : FuzzLine(seed) {
    set("dtype", one_of({"fp32", "fp16", "bf16", "int32"}));
    int64_t length = one_of_numbers({1, 2, 7, 64, 100, 512, 1000, 1024, 2048, 4096, 5000, 8192});
    if (chance(0.15)) length = one_of_numbers({9000, 16384, 20000, 33000});
    if (chance(0.5)) length = std::max<int64_t>(1, length + random().between(-5, 5));
    const int64_t most = length > 5000 ? 2 : length > 600 ? 5 : 40;
    std::vector<int64_t> shape = {random().between(1, most)};
    if (chance(0.3)) shape.push_back(random().between(1, 3));
    int64_t axis = static_cast<int64_t>(shape.size());
    if (chance(0.2)) axis = random().between(0, axis);
    shape.insert(shape.begin() + axis, length);
    std::string text;
    for (const int64_t size : shape) {
      if (!text.empty()) text += 'x';
      text += std::to_string(size);
    }
    set("shape", text);
    if (axis + 1 != static_cast<int64_t>(shape.size()) || chance(0.5)) number("axis", axis);
    int64_t k = random().between(1, std::min<int64_t>(length, 32));
    if (chance(0.4)) k = random().between(1, length);
    if (chance(0.05)) k = length;
    number("k", k);
    set("index", one_of({"int32", "int64"}));
    if (chance(0.5)) set("smallest", "yes");
    if (chance(0.2)) set("any_order", "yes");
    if (chance(0.4)) set("x", one_of({"int", "0", "normal*1e-6", "position", "channel"}));
    if (chance(0.3)) number("levels", random().between(1, 40));
    if (chance(0.3)) set("special", one_of({"0.01", "0.3", "0.9"}));
    place("x", {"random", "random16", "random16", "offset:", "pitch:", "slack"});
    place("values", {"random", "random16", "offset:", "pitch:"});
    place("indices", {"random", "random16", "offset:", "pitch:"});
    if (chance(0.1)) number("repeat", 2);
  }
};

class GateLine : public FuzzLine {
 public:
  explicit GateLine(uint64_t seed) : FuzzLine(seed) {
    set("dtype", one_of({"fp32", "fp16", "bf16"}));
    int64_t length = one_of_numbers({1, 2, 8, 16, 60, 64, 96, 128, 160, 256, 384, 512});
    if (chance(0.3)) length = random().between(1, 512);
    std::string shape = std::to_string(random().between(1, 70)) + "x";
    if (chance(0.3)) shape += std::to_string(random().between(1, 3)) + "x";
    set("shape", shape + std::to_string(length));
    number("k", random().between(1, std::min<int64_t>(length, 16)));
    set("index", one_of({"int32", "int64"}));
    if (chance(0.5)) set("sum", "chosen");
    if (chance(0.5)) set("weights", "same");
    if (chance(0.4)) set("x", one_of({"int", "0", "normal*100", "normal*1e-6", "channel"}));
    if (chance(0.2)) number("levels", random().between(1, 40));
    if (chance(0.3)) set("special", one_of({"0.01", "0.3", "0.9"}));
    place("x", {"random", "random16", "offset:", "pitch:", "slack"});
    place("values", {"random", "random16", "offset:", "pitch:"});
    place("indices", {"random", "random16", "offset:", "pitch:"});
    if (chance(0.1)) number("repeat", 2);
  }
};

// What both operators have; `spec` has their defaults.
void parse(CaseLine &line, TopkSpec &spec) {
  spec.name = line.name();
  spec.seed = line.bits("seed", 1);
  for (const std::string &size : split(line.word("shape", "1"), 'x'))
    spec.shape.push_back(line.to_integer("shape", size, 0, int64_t{1} << 32));
  spec.k = line.integer("k", 1, 0, int64_t{1} << 32);
  spec.dtype = kDtypes[line.choice("dtype", 0, {"fp32", "fp16", "bf16", "int32"})];
  spec.index_dtype =
      line.choice("index", 0, {"int64", "int32"}) == 0 ? FLYDSL_AOT_INT64 : FLYDSL_AOT_INT32;
  spec.x = parse_values(line, "x");
  spec.levels = line.integer("levels", 0, 0, 1 << 20);
  spec.special = line.number("special", 0);
  spec.elements = line.numbers("elements");
  spec.x_place = parse_placement(line, "x", "");
  if (!line.has("x_place")) spec.x_place.kind = PlacementRule::kTight;
  spec.values_place = parse_placement(line, "values", "");
  spec.indices_place = parse_placement(line, "indices", "");
  spec.repeat = line.integer("repeat", 1, 1, 100);
  spec.expect = line.word("expect", "");
  spec.want_values = line.numbers("want_values");
  spec.want_indices = line.numbers("want_indices");
}

}  // namespace

TopkSpec parse_topk_spec(const std::string &text) {
  CaseLine line(text);
  TopkSpec spec;
  parse(line, spec);
  const auto rank = static_cast<int64_t>(spec.shape.size());
  spec.axis = line.integer("axis", -1, -rank, rank - 1);
  spec.smallest = line.choice("smallest", 0, {"no", "yes"}) == 1;
  spec.any_order = line.choice("any_order", 0, {"no", "yes"}) == 1;
  line.finish();
  return spec;
}

TopkSpec parse_topk_softmax_spec(const std::string &text) {
  CaseLine line(text);
  TopkSpec spec;
  parse(line, spec);
  spec.chosen_only = line.choice("sum", 0, {"all", "chosen"}) == 1;
  if (line.choice("weights", 0, {"fp32", "same"}) == 1) spec.weights_dtype = spec.dtype;
  line.finish();
  return spec;
}

std::string fuzz_topk_line(uint64_t seed) {
  return Line(seed).text();
}
std::string fuzz_topk_softmax_line(uint64_t seed) {
  return GateLine(seed).text();
}

Elements topk_numbers(const TopkSpec &spec) {
  const size_t axis = spec.which_axis();
  int64_t before = 1, after = 1;
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    if (i < axis) before *= spec.shape[i];
    if (i > axis) after *= spec.shape[i];
  }
  const int64_t length = spec.shape[axis];
  Elements elements(spec.dtype, static_cast<size_t>(before * length * after));
  const auto value = filler(spec.seed, 1, spec.x, "", 1, before * after, length);
  const bool integer = spec.dtype == FLYDSL_AOT_INT32;
  const int64_t sign = spec.dtype == FLYDSL_AOT_FP32 ? int64_t{1} << 31 : int64_t{1} << 15;
  for (int64_t i = 0; i < before * length * after; ++i) {
    const int64_t n = i / after % length, row = i / (after * length) * after + i % after;
    const auto at = static_cast<size_t>(i);
    Random random = random_at(spec.seed, 2, i);
    float number = value(0, 0, row, n);
    if (spec.levels > 0) number = static_cast<float>(random.below(spec.levels) - spec.levels / 2);
    if (!spec.elements.empty())
      number = static_cast<float>(spec.elements[static_cast<size_t>(n) % spec.elements.size()]);
    if (integer) {
      // All of the range, but where equal ones are wanted.
      const bool wide = spec.x.kind == Values::kNormal && spec.levels == 0 && spec.elements.empty();
      elements.bits[at] =
          wide ? random.bits() & 0xffffffff : static_cast<uint32_t>(static_cast<int32_t>(number));
      continue;
    }
    elements.set(at, number);
    if (!random.chance(spec.special)) continue;
    const float specials[] = {NAN, INFINITY, 0};
    const auto kind = static_cast<size_t>(random.below(3));
    elements.set(at, specials[kind]);
    if (random.chance(0.5)) elements.bits[at] |= static_cast<uint64_t>(sign);
    if (kind == 0) elements.bits[at] |= static_cast<uint64_t>(random.below(64));  // a payload
  }
  return elements;
}

}  // namespace flydsl::verify
