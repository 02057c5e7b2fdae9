// What random lines of the attention operators have in common.
#pragma once

#include "tools/verify/fuzz_line.h"

namespace flydsl::verify {

class AttentionFuzzLine : public FuzzLine {
 public:
  using FuzzLine::FuzzLine;

 protected:
  // From 1 on: near tile edges as often as any others.
  int64_t length(int64_t longest);
  // kind:L0,L1,... of so many sequences; some are empty, some the longest.
  std::string length_list(const std::string &kind, int64_t batches, int64_t longest);

  // A causal mask, else bounds on both sides, else none; both anchors.
  void causal_or_window(double causal_share, double window_share);

  // Each with its probability; whether it was.
  bool softcap(double share);
  bool bias(double share);  // its place too
  bool visible(double share);
  bool alibi(double share);
  bool sinks(double share);
  bool dropout(double share);
};

}  // namespace flydsl::verify
