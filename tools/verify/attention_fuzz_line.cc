#include "tools/verify/attention_fuzz_line.h"

#include <algorithm>

namespace flydsl::verify {

int64_t AttentionFuzzLine::length(int64_t longest) {
  if (chance(0.5)) return random().between(1, longest);
  const int64_t edge = one_of_numbers({1, 16, 32, 64, 128, 192, 256});
  return std::max<int64_t>(1, edge + random().between(-1, 1)) % longest + 1;
}

std::string AttentionFuzzLine::length_list(const std::string &kind, int64_t batches,
                                           int64_t longest) {
  std::string text = kind;
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t length = chance(0.15) ? 0 : chance(0.15) ? longest : random().between(1, longest);
    text.append(b ? "," : ":").append(std::to_string(length));
  }
  return text;
}

void AttentionFuzzLine::causal_or_window(double causal_share, double window_share) {
  const std::string anchor = one_of({":top-left", ":bottom-right"});
  if (chance(causal_share)) {
    set("mask", "causal" + anchor);
  } else if (chance(window_share)) {
    const auto bound = [&] { return std::to_string(random().between(-1, chance(0.5) ? 8 : 200)); };
    const std::string left = bound();
    set("mask", left + "," + bound() + anchor);
  }
}

bool AttentionFuzzLine::softcap(double share) {
  if (!chance(share)) return false;
  set("softcap", one_of({"0.5", "5", "30", "1000"}));
  return true;
}

bool AttentionFuzzLine::bias(double share) {
  if (!chance(share)) return false;
  set("bias", one_of({"fp32", "same"}));
  set("bias_hides", one_of({"0", "0.1", "0.9"}));
  zero("bias", "bhqk", 0.4);
  place("bias");
  return true;
}

bool AttentionFuzzLine::visible(double share) {
  if (!chance(share)) return false;
  set("visible", "random");
  set("visible_share", one_of({"0.7", "0.98", "0.03"}));
  zero("visible", "bhqk", 0.4);
  place("visible");
  return true;
}

bool AttentionFuzzLine::alibi(double share) {
  if (!chance(share)) return false;
  set("alibi", one_of({"h", "bh"}));
  return true;
}

bool AttentionFuzzLine::sinks(double share) {
  if (!chance(share)) return false;
  set("sinks", one_of({"normal", "zero", "high", "minus-infinity"}));
  return true;
}

bool AttentionFuzzLine::dropout(double share) {
  if (!chance(share)) return false;
  set("dropout", one_of({"0.1", "0.5", "0.9"}));
  set("dropout_seed", std::to_string(random().bits()));
  set("dropout_offset", std::to_string(random().bits() >> (chance(0.5) ? 0 : 40)));
  set("dropout_from", one_of({"host", "device"}));
  return true;
}

}  // namespace flydsl::verify
