// Random lines of cases of gemm.
#include <algorithm>

#include "tools/verify/fuzz_line.h"
#include "tools/verify/gemm_case.h"

namespace flydsl::verify {
namespace {

class Line : public FuzzLine {
 public:
  explicit Line(uint64_t seed) : FuzzLine(seed) {
    types();
    friendly_ = chance(0.4);
    shape();
    if (chance(0.3)) set("alpha", one_of({"0.5", "-2", "1.25", "0", "3e-3"}));
    const bool beta = chance(0.35);
    if (beta) set("beta", one_of({"1", "1", "-0.5", "2"}));
    operand("a", "bmk");
    operand("b", "bkn");
    epilogue(beta);
    if (chance(0.15)) number("repeat", 2);
  }

 private:
  void types() {
    type_ = one_of({"bf16", "bf16", "fp16", "fp16", "fp32", "e4m3", "e5m2"});
    set("dtype", type_);
    bytes_ = type_ == "e4m3" || type_ == "e5m2";
    if (bytes_ && chance(0.5)) set("b_dtype", one_of({"e4m3", "e5m2"}));
    d_type_ = bytes_ ? "bf16" : type_;
    if (chance(0.5)) {
      d_type_ = one_of({"bf16", "fp16", "fp32", "e4m3", "e5m2"});
      set("d_dtype", d_type_);
    }
    if (bytes_) {
      if (chance(0.6)) set("a_descale", one_of({"one", "each"}));
      if (chance(0.6)) set("b_descale", one_of({"one", "each"}));
    }
  }

  void shape() {
    // Round the ends of tiles, of chunks of 16 bytes and of parts of K.
    const auto size = [&](const std::vector<int64_t> &sizes) {
      const int64_t near = one_of_numbers(sizes);
      return std::max<int64_t>(1, chance(0.5) ? near : near + random().between(-3, 3));
    };
    int64_t m = size({1, 8, 16, 32, 64, 100, 128, 192, 256}),
            n = size({1, 8, 40, 64, 128, 200, 256});
    int64_t k = chance(0.05) ? 0 : size({1, 8, 16, 32, 64, 100, 128, 256, 300, 512});
    if (chance(0.12)) {  // parts of K
      m = std::min<int64_t>(m, 40);
      n = std::min<int64_t>(n, 130);
      k = size({1024, 1280, 2048, 2500});
    }
    if (friendly_) {
      if (chance(0.4)) m = one_of_numbers({1, 16, 24, 40, 64, 130, 264, 300, 520});
      if (chance(0.4)) n = one_of_numbers({136, 264, 384, 520});
      m = chance(0.7) ? (m + 7) / 8 * 8 : m;
      n = (n + 7) / 8 * 8;
      k = chance(0.7) ? (k + 15) / 16 * 16 : k;
    }
    number("m", m);
    number("n", n);
    number("k", k);
    if (chance(0.3)) {
      batched_ = true;
      number("batch", random().between(1, m * n * std::max<int64_t>(k, 1) > 3000000 ? 2 : 4));
    }
  }

  void operand(const std::string &name, const std::string &axes) {
    if (chance(0.3)) set(name, one_of({"int", "normal*30", "normal*1e-3", "1"}));
    if (friendly_) {
      // What fast instances take: one stride of 1, aligned.
      const bool along_k = chance(bytes_ ? 0.9 : 0.6);
      if (along_k != (name == "a")) set(name + "_layout", "columns");
      place(name, {"random16", "tight", "tight"});
      if (chance(0.1)) number("nan_" + name, 1);
      return;
    }
    if (chance(0.5)) set(name + "_layout", one_of({"columns", "columns", "apart"}));
    if (chance(0.15)) {
      where(name, axes, 0.4);
    } else {
      where(name, "", 0);
      if (chance(0.08)) number("nan_" + name, 1);
      if (name == "a" && type_ != "e4m3" && chance(0.05)) number("inf_a", 1);
    }
    // D is batched because one of them is.
    if (batched_ && chance(0.2))
      set(name + "_batch", name == "a" ? one_of({"none", "one"}) : "one");
  }

  void where(const std::string &name, const std::string &axes, double zero_share) {
    place(name, {"random", "random16", "random16", "slack", "offset:", "pitch:"});
    if (!axes.empty()) zero(name, axes, zero_share);
  }

  std::string wide() { return one_of({"bf16", "fp16", "fp32"}); }

  void epilogue(bool beta) {
    const bool activation = chance(0.3);
    if (activation) set("activation", one_of({"relu", "gelu", "gelu_tanh", "silu"}));
    const bool d_is_wide = d_type_ != "e4m3" && d_type_ != "e5m2";
    if (!d_is_wide && chance(0.6)) set("d_scale", one_of({"0.5", "3", "0.01"}));
    const bool in_place = d_is_wide && beta && chance(0.3);
    if (in_place) {
      set("c_in_d", "yes");
    } else if (beta) {
      matrix("c");
    }
    bool residual_in_d = false;
    if (chance(0.25)) {
      set("residual", one_of({"normal", "int"}));
      residual_in_d = d_is_wide && !in_place && chance(0.3);
      if (residual_in_d)
        set("residual_in_d", "yes");
      else
        matrix("residual");
    }
    if (activation && chance(0.4)) {
      set("z", one_of({"normal", "normal", "normal*4", "int"}));
      if (d_is_wide && !in_place && !residual_in_d && chance(0.3)) {
        set("z_dtype", d_type_);
        set("z_in_d", "yes");
      } else {
        matrix("z");
      }
    } else if (chance(0.25)) {
      set("aux", wide());
      output("aux");
    }
    for (const char *name : {"d_sum_m", "d_sum_n", "a_sum_m", "b_sum_n"}) {
      if (!chance(0.1) || (name[0] == 'd' ? !d_is_wide : bytes_)) continue;
      set(name, wide());
      if (batched_ && chance(0.5)) set(std::string(name) + "_batch", "none");
      where(name, "", 0);
    }
    bias("bias_m", "bm");
    bias("bias_n", "bn");
    output("d");
  }

  void bias(const std::string &name, const std::string &axes) {
    if (!chance(0.3)) return;
    set(name, one_of({"normal", "int"}));
    set(name + "_dtype", wide());
    where(name, axes, 0.05);
    if (batched_ && chance(0.5)) set(name + "_batch", "none");
  }

  void matrix(const std::string &name) {
    set(name + "_dtype", wide());
    if (chance(0.3)) set(name + "_layout", one_of({"columns", "apart"}));
    where(name, "bmn", 0.1);
    if (batched_ && chance(0.3)) set(name + "_batch", one_of({"none", "one"}));
  }

  void output(const std::string &name) {
    if (chance(0.35)) set(name + "_layout", one_of({"columns", "columns", "apart"}));
    where(name, "", 0);
  }

  std::string type_, d_type_;
  bool bytes_ = false, batched_ = false;
  bool friendly_ = false;  // to fast instances
};

}  // namespace

std::string fuzz_gemm_line(uint64_t seed) {
  return Line(seed).text();
}

}  // namespace flydsl::verify
