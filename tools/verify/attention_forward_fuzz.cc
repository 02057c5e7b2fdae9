#include "tools/verify/attention_forward_fuzz.h"

#include <algorithm>

#include "tools/verify/attention_fuzz_line.h"

namespace flydsl::verify {
namespace {

class Line : public AttentionFuzzLine {
 public:
  using AttentionFuzzLine::AttentionFuzzLine;

  void shape() {
    set("dtype", one_of({"bf16", "fp16"}));
    batches_ = random().between(1, 3);
    heads_kv_ = random().between(1, 2);
    heads_q_ = heads_kv_ * one_of_numbers({1, 1, 2, 3, 7});
    const bool large = chance(0.1);
    seq_q_ = length(heads_q_ > 4 || large ? 70 : 160);
    seq_k_ = length(large ? 130 : 300);
    int64_t d = chance(0.6) ? one_of_numbers({64, 128, 64, 128, 32, 96, 192, 256})
                            : random().between(1, 256);
    if (large) d = chance(0.6) ? one_of_numbers({512, 576}) : random().between(257, 576);
    int64_t dv = chance(0.7) ? d : random().between(1, large ? 512 : 256);
    if (d == 192 && chance(0.3)) dv = 128;
    dv = std::min<int64_t>(dv, 512);
    if (chance(0.03)) {  // rows enough for the instances that want many
      batches_ = heads_q_ = heads_kv_ = 1;
      seq_q_ = one_of_numbers({2048, 4096}) + random().between(0, 40);
      seq_k_ = length(200);
      d = dv = 128;
    }
    e4m3_ = chance(0.08);
    if (e4m3_) {  // what the instances for e4m3 serve, one in eight times those for many rows
      d = dv = one_of_numbers({64, 128});
      const bool long_rows = chance(0.125);
      if (long_rows) batches_ = heads_q_ = heads_kv_ = 1;
      seq_q_ =
          long_rows ? one_of_numbers({2048, 4096, 8192}) + random().between(0, 40) : length(400);
      seq_k_ = length(600);
    }
    chunks_ = !e4m3_ && !large && chance(0.08);
    if (chunks_) {  // chunks of prefill beside rows of decoding
      batches_ = random().between(2, 9);
      seq_q_ = random().between(1, 200);
      seq_k_ = seq_q_ + random().between(0, 400);
    }
    v_is_k_ = dv <= d && chance(large ? 0.4 : 0.02);
    number("b", batches_);
    number("hq", heads_q_);
    number("hkv", heads_kv_);
    number("sq", seq_q_);
    number("d", d);
    number("dv", dv);
    set("lse", chance(0.85) ? "yes" : "no");
    if (chance(0.2)) set("scale", one_of({"1", "-0.1", "0", "0.02", "0.5"}));
  }

  void mask() {
    if (chunks_ && chance(0.7)) return set("mask", "causal:bottom-right");
    causal_or_window(0.3, 0.5);
  }

  // Paged keys, and packed queries that are the last ones of their sequences, or more.
  void chunks() {
    std::string rows = one_of({"packed", "packed-used"}), keys = "paged";
    for (int64_t b = 0; b < batches_; ++b) {
      const int64_t length = chance(0.5)   ? 1
                             : chance(0.2) ? 0
                             : chance(0.3) ? seq_q_
                                           : random().between(1, seq_q_);
      const int64_t all =
          chance(0.9) ? random().between(length, seq_k_) : random().below(length + 1);
      rows.append(b ? "," : ":").append(std::to_string(length));
      keys.append(b ? "," : ":").append(std::to_string(all));
    }
    packed_q_ = packed_k_ = true;
    seq_k_ += seq_k_ % 2;
    set("q_lengths", rows);
    set("k_lengths", keys);
    number("block", one_of_numbers({1, 16, 32, 64, 128, 256}));
    number("sk", seq_k_);
  }

  // Lengths, and where keys are; says sk.
  void lengths() {
    if (chunks_) return chunks();
    if (chance(0.4)) {
      packed_q_ = chance(0.7);
      set("q_lengths",
          length_list(!packed_q_ ? "used" : one_of({"packed", "packed-used"}), batches_, seq_q_));
    }
    const bool paged = chance(0.2);
    if (paged) {
      seq_k_ += seq_k_ % 2;  // of paged keys an even sk is told to the library: a bias must have it
      packed_k_ = true;
      set("k_lengths", length_list("paged", batches_, seq_k_));
      number("block", one_of_numbers({1, 2, 16, 32, 64, 128, 256}));
    } else if (chance(0.35)) {
      packed_k_ = chance(0.7);
      set("k_lengths",
          length_list(!packed_k_ ? "used" : one_of({"packed", "packed-used"}), batches_, seq_k_));
    }
    number("sk", seq_k_);
  }

  void scores() {
    if (e4m3_) return;
    softcap(0.15);
    bias(0.25);
    visible(0.2);
    alibi(0.15);
    sinks(0.15);
    if (dropout(0.2) && chance(0.2)) set("kept", "yes");
  }

  void formats() {
    if (!e4m3_ && chance(chunks_ ? 0.5 : 0.85)) return;
    set("kv_dtype", e4m3_ ? "e4m3" : one_of({"e4m3", "e5m2"}));
    if (e4m3_ || chance(0.5)) {
      set("q_dtype", e4m3_ ? "e4m3" : one_of({"e4m3", "e5m2"}));
      set("q_descale", one_of({"none", "one", "h", "bh", "hq", "bhq"}));
    }
    set("k_descale", one_of({"none", "one", "h", "bh"}));
    set("v_descale", one_of({"none", "one", "h", "bh"}));
  }

  void values() {
    if (chance(0.1)) set("q", one_of({"0", "int", "normal*20"}));
    if (chance(0.1)) set("k", one_of({"1", "int", "normal*0.01"}));
    if (v_is_k_) {
      set("v", "k");
    } else if (chance(0.1)) {
      set("v", one_of({"channel/64", "normal*100", "position%128/128"}));
    }
    const bool hidden = chance(0.25);
    if (hidden) set("nan_hidden", "yes");
    if (chance(0.12)) {
      set(v_is_k_ ? "nan_k" : one_of({"nan_k", "nan_v", "nan_v_channel"}),
          std::to_string(random().between(1, 3)));
    } else if (!hidden && !packed_k_) {
      zero("k", "bhs", 0.1);
      if (!v_is_k_) zero("v", "bhs", 0.1);
    }
    if (!packed_q_) zero("q", "bhs", 0.1);
    if (e4m3_ && chance(0.7)) return;  // those instances want 16-byte alignment
    for (const char *tensor : {"q", "k", "out", "lse"}) place(tensor);
    if (!v_is_k_) place("v");
  }

 private:
  int64_t batches_ = 1, heads_q_ = 1, heads_kv_ = 1, seq_q_ = 1, seq_k_ = 1;
  bool packed_q_ = false, packed_k_ = false, e4m3_ = false, chunks_ = false, v_is_k_ = false;
};

}  // namespace

std::string fuzz_attention_forward_line(uint64_t seed) {
  Line line(seed);
  line.shape();
  line.mask();
  line.lengths();
  line.scores();
  line.formats();
  line.values();
  return std::move(line).text();
}

}  // namespace flydsl::verify
