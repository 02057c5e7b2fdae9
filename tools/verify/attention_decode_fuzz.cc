#include "tools/verify/attention_decode_fuzz.h"

#include <algorithm>

#include "tools/verify/attention_fuzz_line.h"

namespace flydsl::verify {
namespace {

// What attention_decode takes (include/flydsl_aot/attention_decode.h); all else is refused, which is for the list of
// cases to say.
struct HeadDims {
  int64_t qk, v;
};
constexpr HeadDims kHeadDims[] = {{64, 64}, {128, 128}, {192, 128}, {256, 256}, {576, 512}};
constexpr int64_t kMostQueries = 16;

class Line : public AttentionFuzzLine {
 public:
  using AttentionFuzzLine::AttentionFuzzLine;

  void shape() {
    set("dtype", one_of({"bf16", "fp16"}));
    batches_ = random().between(1, 4);
    heads_kv_ = one_of_numbers({1, 1, 1, 2, 3, 4, 8});
    heads_q_ = heads_kv_ * one_of_numbers({1, 1, 2, 3, 4, 5, 7, 8, 12, 16, 33});
    seq_q_ = chance(0.4) ? 1 : random().between(1, kMostQueries);
    // Lengths near the edges of tiles as often as any others; some are long, some are many.
    seq_k_ = chance(0.5) ? random().between(1, 400)
                         : one_of_numbers({2, 16, 32, 64, 96, 128, 256}) * random().between(1, 3) +
                               random().between(-1, 1);
    if (chance(0.06)) {
      batches_ = random().between(1, 2);
      heads_kv_ = 1;
      heads_q_ = one_of_numbers({1, 4, 8});
      seq_q_ = random().between(1, 2);
      seq_k_ = random().between(1000, 6000);
    } else if (chance(0.1)) {
      batches_ = random().between(5, 70);
      heads_kv_ = 1;
      heads_q_ = random().between(1, 8);
      seq_k_ = random().between(1, 120);
    }
    const bool e5m2 = chance(0.1);
    float8_ = e5m2 || chance(0.25);
    HeadDims dims = kHeadDims[random().below(e5m2 ? 2 : std::size(kHeadDims))];
    if (chance(0.3)) {  // less than the kernel's, in steps of 16 bytes
      const int64_t step = float8_ ? 16 : 8;
      dims = {random().between(1, dims.qk / step) * step,
              random().between(1, dims.v / step) * step};
    }
    // 8-bit ones above 256 must be.
    const bool large = dims.qk > 256 || dims.v > 256;
    if (float8_ && large) dims.v = std::min(dims.qk, dims.v);
    values_of_keys_ = dims.v <= dims.qk && (float8_ && large ? true : chance(large ? 0.6 : 0.05));
    number("b", batches_);
    number("hq", heads_q_);
    number("hkv", heads_kv_);
    number("sq", seq_q_);
    number("d", dims.qk);
    number("dv", dims.v);
    if (float8_) {
      set("kv_dtype", e5m2 ? "e5m2" : "e4m3");
      set("k_descale", one_of({"none", "one", "h", "bh"}));
      if (!values_of_keys_) set("v_descale", one_of({"none", "one", "h", "bh"}));
    }
    set("lse", chance(0.8) ? "yes" : "no");
    if (chance(0.15)) set("scale", one_of({"1", "-0.1", "0", "0.02", "0.5"}));
  }

  // Most callers of Sq above 1 want the causal mask from the bottom right.
  void mask() {
    if (chance(0.45)) {
      set("mask", "causal:bottom-right");
    } else if (chance(0.5)) {
      const int64_t most = chance(0.5) ? 8 : seq_k_ + 20;
      const auto bound = [&] { return std::to_string(random().between(-1, most)); };
      set("mask", bound() + "," + bound() + one_of({":top-left", ":bottom-right"}));
    }
  }

  // Lengths, and where keys are; says sk.
  void lengths() {
    const bool paged = chance(0.5);
    if (paged) seq_k_ += chance(0.5) ? seq_k_ % 2 : 0;  // an even sk is told as max_seqlen_k
    if (paged || chance(0.4)) {
      std::string text = paged ? "paged" : "used";
      for (int64_t b = 0; b < batches_; ++b) {
        const int64_t length = chance(0.1)    ? 0
                               : chance(0.1)  ? 1
                               : chance(0.15) ? seq_k_
                                              : random().between(1, seq_k_);
        text.append(b ? "," : ":").append(std::to_string(length));
      }
      set("k_lengths", text);
    }
    if (paged) number("block", one_of_numbers({1, 16, 32, 64, 128, 256, 2, 8}));
    paged_ = paged;
    number("sk", seq_k_);
  }

  void scores() {
    softcap(0.15);
    alibi(0.15);
    sinks(0.2);
  }

  void values() {
    if (chance(0.1)) set("q", one_of({"0", "int", "normal*20"}));
    if (chance(0.1)) set("k", one_of({"1", "int", "normal*0.01"}));
    if (values_of_keys_)
      set("v", "k");
    else if (chance(0.1))
      set("v", one_of({"channel/64", "normal*100", "position%128/128"}));
    const bool hidden = chance(0.5);
    if (hidden) set("nan_hidden", "yes");
    if (chance(0.15)) {
      set(values_of_keys_ ? "nan_k" : one_of({"nan_k", "nan_v", "nan_v_channel"}),
          std::to_string(random().between(1, 3)));
    } else if (!hidden && !paged_) {
      zero("k", "bhs", 0.1);
      if (!values_of_keys_) zero("v", "bhs", 0.1);
    }
    zero("q", "bhs", 0.1);
    for (const char *tensor : {"q", "out", "lse"}) place(tensor);
    // Aligned to 16 bytes.
    place("k", {"bshd", "random16", "slack"});
    if (!values_of_keys_) place("v", {"bshd", "random16", "slack"});
    if (chance(0.1)) set("repeat", "2");
  }

 private:
  int64_t batches_ = 1, heads_q_ = 1, heads_kv_ = 1, seq_q_ = 1, seq_k_ = 1;
  bool paged_ = false, float8_ = false, values_of_keys_ = false;
};

}  // namespace

std::string fuzz_attention_decode_line(uint64_t seed) {
  Line line(seed);
  line.shape();
  line.mask();
  line.lengths();
  line.scores();
  line.values();
  return std::move(line).text();
}

}  // namespace flydsl::verify
