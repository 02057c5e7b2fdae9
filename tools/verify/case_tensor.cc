#include "tools/verify/case_tensor.h"

namespace flydsl::verify {
namespace {

constexpr int64_t kMaxModulus = int64_t{1} << 24;

bool has(const std::string &letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

}  // namespace

Values parse_values(CaseLine &line, const std::string &key) {
  const std::string text = line.word(key, "normal");
  Values values;
  const auto number_after = [&](size_t begin) { return line.to_number(key, text.substr(begin)); };
  if (text == "int") {
    values.kind = Values::kInteger;
  } else if (text == "k" && key == "v") {
    values.kind = Values::kKeys;
  } else if (text.starts_with("normal")) {
    if (text.size() > 6 && text[6] != '*') line.fail(key, "must be normal or normal*NUMBER");
    if (text.size() > 6) values.factor = number_after(7);
  } else if (text.starts_with("first:")) {
    values.kind = Values::kFirst;
    values.factor = number_after(6);
  } else if (text[0] >= 'a' && text[0] <= 'z') {
    const size_t end = text.find_first_of("%/");
    const std::string name = text.substr(0, end);
    if (name == "position")
      values.kind = Values::kPosition;
    else if (name == "channel")
      values.kind = Values::kChannel;
    else if (name == "batch")
      values.kind = Values::kBatch;
    else if (name == "head")
      values.kind = Values::kHead;
    else if (name == "batch+head")
      values.kind = Values::kBatchPlusHead;
    else
      line.fail(key,
                "must be normal, int, first:NUMBER, a number, or position, channel, batch, head or "
                "batch+head with %NUMBER, /NUMBER or both; of v also k");
    const size_t slash = text.find('/');
    if (slash != std::string::npos) values.divisor = number_after(slash + 1);
    const size_t percent = text.find('%');
    if (percent != std::string::npos) {
      const std::string modulus =
          text.substr(percent + 1, slash == std::string::npos ? slash : slash - percent - 1);
      values.modulus = line.to_integer(key, modulus, 1, kMaxModulus);
    }
  } else {
    values.kind = Values::kConstant;
    values.factor = number_after(0);
  }
  return values;
}

PlacementRule parse_placement(CaseLine &line, const std::string &tensor, const std::string &axes) {
  const std::string key = tensor + "_place";
  const std::string text = line.word(key, axes.empty() ? "guarded" : "tight");
  PlacementRule rule;
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  constexpr const char *kNames[] = {"tight",    "guarded", "bshd",   "random",
                                    "random16", "slack",   "offset", "pitch"};
  size_t kind = 0;
  while (kind < std::size(kNames) && name != kNames[kind]) ++kind;
  const bool counted = kind == PlacementRule::kOffset || kind == PlacementRule::kPitch;
  if (kind == std::size(kNames) || counted != (colon != std::string::npos)) {
    line.fail(
        key,
        "must be tight, guarded, bshd, random, random16, slack, offset:ELEMENTS or pitch:ELEMENTS");
  }
  rule.kind = static_cast<PlacementRule::Kind>(kind);
  if (counted) rule.elements = line.to_integer(key, text.substr(colon + 1), 0, 1 << 20);
  if (!axes.empty()) rule.zero = line.letters(tensor + "_zero", "", axes);
  return rule;
}

namespace {

uint64_t first_place(uint64_t seed, uint64_t stream) {
  return Random(seed * 31 + stream).bits();
}
Random random_from(uint64_t first, int64_t place) {
  return Random(first + static_cast<uint64_t>(place) * 0xd1342543de82ef95);
}

}  // namespace

Random random_at(uint64_t seed, uint64_t stream, int64_t place) {
  return random_from(first_place(seed, stream), place);
}

AttentionCase::Fill filler(uint64_t seed, uint64_t stream, const Values &values,
                           const std::string &zero, int64_t heads, int64_t positions,
                           int64_t channels) {
  return [=, first = first_place(seed, stream), b0 = has(zero, 'b'), h0 = has(zero, 'h'),
          s0 = has(zero, 's')](int64_t b, int64_t h, int64_t s, int64_t d) -> float {
    b = b0 ? 0 : b;
    h = h0 ? 0 : h;
    s = s0 ? 0 : s;
    const auto coordinate = [&](int64_t n) {
      return static_cast<float>(static_cast<double>(values.modulus ? n % values.modulus : n) /
                                values.divisor);
    };
    const int64_t place = ((b * heads + h) * positions + s) * channels + d;
    switch (values.kind) {
      case Values::kNormal:
        return static_cast<float>(values.factor) * random_from(first, place).normal();
      case Values::kInteger:
        return static_cast<float>(random_from(first, place).between(-2, 2));
      case Values::kConstant:
        return static_cast<float>(values.factor);
      case Values::kFirst:
        return d == 0 ? static_cast<float>(values.factor) : 0;
      case Values::kPosition:
        return coordinate(s);
      case Values::kChannel:
        return coordinate(d);
      case Values::kBatch:
        return coordinate(b);
      case Values::kHead:
        return coordinate(h);
      case Values::kBatchPlusHead:
        return coordinate(b + h);
      case Values::kKeys:
        break;  // taken from k, below
    }
    return 0;
  };
}

Placement place(const PlacementRule &rule, Random &random, int rank, int free_axes,
                const std::string &axes, int64_t element_bytes) {
  Placement placement;
  switch (rule.kind) {
    case PlacementRule::kTight:
      break;
    case PlacementRule::kGuarded:
      placement.offset_elements = placement.slack_elements = 64;
      break;
    case PlacementRule::kBshd:
      for (int axis = 0; axis < rank; ++axis) placement.order.push_back(axis);
      if (rank >= 2) {
        const size_t head = rank == 4 || free_axes == 3 ? 1 : 0;  // packed tensors have no batches
        std::swap(placement.order[head], placement.order[head + 1]);
      }
      break;
    case PlacementRule::kRandom:
    case PlacementRule::kRandom16:
      placement = random_placement(random, rank, free_axes, rule.kind == PlacementRule::kRandom16,
                                   element_bytes);
      break;
    case PlacementRule::kSlack:
      placement.pad.assign(static_cast<size_t>(rank), 48);
      placement.offset_elements = 96;
      placement.slack_elements = 333;
      break;
    case PlacementRule::kOffset:
      placement.offset_elements = rule.elements;
      break;
    case PlacementRule::kPitch:
      placement.pad.assign(static_cast<size_t>(rank), 0);
      placement.pad.back() = rule.elements;
      break;
  }
  if (!rule.zero.empty()) {
    for (int axis = 0; axis < rank; ++axis)
      placement.broadcast.push_back(static_cast<size_t>(axis) < axes.size() &&
                                    has(rule.zero, axes[static_cast<size_t>(axis)]));
  }
  return placement;
}

}  // namespace flydsl::verify
