#include "tools/verify/attention_backward_fuzz.h"

#include <algorithm>

#include "tools/verify/fuzz_line.h"

namespace flydsl::verify {
namespace {

class Line : public FuzzLine {
 public:
  using FuzzLine::FuzzLine;

  void shape() {
    set("dtype", one_of({"bf16", "fp16"}));
    together_ = chance(0.12);
    if (together_) return shape_of_together();
    batches_ = random().between(1, 3);
    const int64_t heads_kv = random().between(1, 2);
    const int64_t heads_q = heads_kv * one_of_numbers({1, 1, 2, 3, 7});
    // Lengths near tile edges as often as any others.
    const auto length = [&](int64_t longest) {
      return chance(0.5) ? random().between(1, longest)
                         : std::max<int64_t>(1, one_of_numbers({1, 16, 32, 64, 128, 192, 256}) +
                                                    random().between(-1, 1)) %
                                   longest +
                               1;
    };
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

  void mask() {
    const std::string anchor = one_of({":top-left", ":bottom-right"});
    if (chance(together_ ? 0.6 : 0.4)) {
      set("mask", "causal" + anchor);
    } else if (!together_ && chance(0.4)) {
      const auto bound = [&] {
        return std::to_string(random().between(-1, chance(0.5) ? 8 : 200));
      };
      set("mask", bound() + "," + bound() + anchor);
    }
  }

  void lengths() {
    if (together_) return;
    const auto list = [&](const std::string &kind, int64_t longest) {
      std::string text = kind;
      for (int64_t b = 0; b < batches_; ++b) {
        const int64_t length = chance(0.15)   ? 0
                               : chance(0.15) ? longest
                                              : random().between(1, longest);
        text.append(b ? "," : ":").append(std::to_string(length));
      }
      return text;
    };
    if (chance(0.4)) {
      packed_q_ = chance(0.7);
      set("q_lengths", list(!packed_q_ ? "used" : one_of({"packed", "packed-used"}), seq_q_));
      if (packed_q_ && chance(0.5)) set("lse_rows", "padded");
    }
    if (chance(0.4)) {
      packed_k_ = chance(0.7);
      set("k_lengths", list(!packed_k_ ? "used" : one_of({"packed", "packed-used"}), seq_k_));
    }
  }

  void scores() {
    if (plain_) return;
    if (chance(0.2)) set("softcap", one_of({"0.5", "5", "30", "1000"}));
    if (chance(0.4)) {
      set("bias", one_of({"fp32", "same"}));
      set("bias_hides", one_of({"0", "0.1", "0.9"}));
      zero("bias", "bhqk", 0.4);
      place("bias");
      if (chance(0.8)) {
        set("dbias", one_of({"fp32", "same"}));
        if (chance(0.2)) set("dbias_sum", "none");
        place("dbias", {"random", "slack", "offset:"});
      }
    }
    if (chance(0.25)) {
      set("visible", "random");
      set("visible_share", one_of({"0.7", "0.98", "0.03"}));
      zero("visible", "bhqk", 0.4);
      place("visible");
    }
    if (chance(0.2)) set("alibi", one_of({"h", "bh"}));
    if (chance(0.25)) {
      set("sinks", one_of({"normal", "zero", "high", "minus-infinity"}));
      if (chance(0.8)) set("dsinks", "yes");
    }
    if (chance(0.25)) {
      set("dropout", one_of({"0.1", "0.5", "0.9"}));
      set("dropout_seed", std::to_string(random().bits()));
      set("dropout_offset", std::to_string(random().bits() >> (chance(0.5) ? 0 : 40)));
      set("dropout_from", one_of({"host", "device"}));
    }
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
    const auto length = [&](int64_t longest, const std::vector<int64_t> &edges) {
      return chance(0.5) ? random().between(1, longest)
                         : one_of_numbers(edges) + random().between(-1, 1);
    };
    seq_q_ = length(chance(0.2) ? 900 : 200, {2, 16, 32, 64, 96, 128, 160, 256});
    seq_k_ = length(1100, {2, 64, 128, 192, 256, 512, 768, 1024});
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
