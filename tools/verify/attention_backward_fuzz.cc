#include "tools/verify/attention_backward_fuzz.h"

#include <algorithm>

#include "tools/verify/attention_fuzz_line.h"

namespace flydsl::verify {
namespace {

class Line : public AttentionFuzzLine {
 public:
  using AttentionFuzzLine::AttentionFuzzLine;

  void shape() {
    set("dtype", one_of({"bf16", "fp16"}));
    together_ = chance(0.12);
    if (together_) return shape_of_together();
    batches_ = random().between(1, 3);
    const int64_t heads_kv = random().between(1, 2);
    const int64_t heads_q = heads_kv * one_of_numbers({1, 1, 2, 3, 7});
    const bool large = chance(0.1);
    seq_q_ = length(heads_q > 4 || large ? 70 : 160);
    seq_k_ = length(heads_q > 4 || large ? 150 : 300);
    int64_t d = chance(0.7) ? one_of_numbers({64, 128, 64, 128, 32, 96, 160, 192, 224, 256})
                            : random().between(1, 256);
    if (large) d = chance(0.6) ? one_of_numbers({512, 576}) : random().between(257, 576);
    int64_t dv = chance(0.75) ? std::min<int64_t>(d, 512) : random().between(1, large ? 512 : 256);
    if (d == 192 && chance(0.5)) dv = 128;
    plain_ = chance(0.4);  // what the fast kernels serve
    number("b", batches_);
    number("hq", heads_q);
    number("hkv", heads_kv);
    number("sq", seq_q_);
    number("sk", seq_k_);
    number("d", d);
    number("dv", dv);
    v_is_k_ = dv <= d && chance(0.03);
    if (chance(0.2)) set("scale", one_of({"1", "-0.1", "0", "0.02", "0.5"}));
    if (chance(0.2)) set("from", "forward");
  }

  void mask() { causal_or_window(together_ ? 0.6 : 0.4, together_ ? 0 : 0.4); }

  void lengths() {
    if (together_) return;
    if (chance(0.4)) {
      packed_q_ = chance(0.7);
      set("q_lengths",
          length_list(!packed_q_ ? "used" : one_of({"packed", "packed-used"}), batches_, seq_q_));
      if (packed_q_ && chance(0.5)) set("lse_rows", "padded");
    }
    if (chance(0.4)) {
      packed_k_ = chance(0.7);
      set("k_lengths",
          length_list(!packed_k_ ? "used" : one_of({"packed", "packed-used"}), batches_, seq_k_));
    }
  }

  void scores() {
    if (plain_) return;
    softcap(0.2);
    if (bias(0.4) && chance(0.8)) {
      set("dbias", one_of({"fp32", "same"}));
      if (chance(0.2)) set("dbias_sum", "none");
      place("dbias", {"random", "slack", "offset:"});
    }
    visible(0.25);
    alibi(0.2);
    if (sinks(0.25) && chance(0.8)) set("dsinks", "yes");
    dropout(0.25);
  }

  void values() {
    if (chance(0.1)) set("q", one_of({"0", "int", "normal*5"}));
    if (chance(0.1)) set("k", one_of({"1", "int", "normal*0.01"}));
    if (v_is_k_) {
      set("v", "k");
    } else if (chance(0.1)) {
      set("v", one_of({"channel/64", "normal*100", "position%128/128"}));
    }
    if (chance(0.15)) set("dout", one_of({"1", "int", "normal*100", "normal*0.001", "channel/64"}));
    if (!together_ && chance(0.15)) set("gradients", one_of({"q", "k", "v", "qk", "qv", "kv"}));
    const bool hidden = chance(0.25);
    if (hidden) set("nan_hidden", "yes");
    bool zeros = !hidden;
    if (chance(0.12)) {
      set(v_is_k_ ? "nan_k" : one_of({"nan_k", "nan_v", "nan_v_channel", "nan_q", "nan_dout"}),
          std::to_string(random().between(1, 3)));
      zeros = false;
    }
    if (zeros) {
      if (!packed_k_) zero("k", "bhs", 0.1);
      if (!packed_k_ && !v_is_k_) zero("v", "bhs", 0.1);
      if (!packed_q_) zero("q", "bhs", 0.1);
      if (packed_q_) {
        if (chance(0.2)) set("dout_zero", one_of({"h", "d", "hd", "hsd"}));
      } else if (chance(0.3)) {
        zero("dout", "bhsd", 0.4);
      }
    }
    if (together_) {
      const std::vector<std::string> aligned = {"bshd", "random16", "slack", "pitch:8", "pitch:72"};
      for (const char *tensor : {"q", "k", "out", "dout", "dq", "dk", "dv"}) place(tensor, aligned);
      if (!v_is_k_) place("v", aligned);
    }
    if (plain_ && (together_ || chance(0.5))) return;  // 16-byte aligned
    for (const char *tensor : {"q", "k", "out", "dout", "dq", "dk", "dv"}) place(tensor);
    place("lse", {"random", "slack", "offset:"});
    if (!v_is_k_) place("v");
  }

 private:
  // What one kernel for all gradients takes, of several blocks of its keys.
  void shape_of_together() {
    plain_ = true;
    const auto near = [&](int64_t longest, const std::vector<int64_t> &edges) {
      return chance(0.5) ? random().between(1, longest)
                         : one_of_numbers(edges) + random().between(-1, 1);
    };
    seq_q_ = near(chance(0.2) ? 900 : 200, {2, 16, 32, 64, 96, 128, 160, 256});
    seq_k_ = near(1100, {2, 64, 128, 192, 256, 512, 768, 1024});
    const int64_t heads_kv = random().between(1, 3), group = one_of_numbers({1, 1, 2, 3, 7});
    batches_ = random().between(1, 3);
    // What takes the oracle a second or so.
    const int64_t most = std::max<int64_t>(1, 600000 / (seq_q_ * seq_k_));
    const int64_t heads_q = heads_kv * (heads_kv * group <= most ? group : 1);
    batches_ = std::min(batches_, std::max<int64_t>(1, most / heads_q));
    const int64_t d = one_of_numbers({128, 128, 128, 64});
    number("b", batches_);
    number("hq", heads_q);
    number("hkv", heads_kv);
    number("sq", seq_q_);
    number("sk", seq_k_);
    number("d", d);
    number("dv", d);
    v_is_k_ = chance(0.03);
    if (chance(0.2)) set("scale", one_of({"1", "-0.1", "0.02", "0.5"}));
    if (chance(0.1)) set("from", "forward");
  }

  int64_t batches_ = 1, seq_q_ = 1, seq_k_ = 1;
  bool packed_q_ = false, packed_k_ = false, plain_ = false, v_is_k_ = false, together_ = false;
};

}  // namespace

std::string fuzz_attention_backward_line(uint64_t seed) {
  Line line(seed);
  line.shape();
  line.mask();
  line.lengths();
  line.scores();
  line.values();
  return std::move(line).text();
}

}  // namespace flydsl::verify
