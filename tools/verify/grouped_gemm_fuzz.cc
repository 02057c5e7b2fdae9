#include <algorithm>

#include "tools/verify/fuzz_line.h"
#include "tools/verify/grouped_gemm_verify.h"

namespace flydsl::verify {
namespace {

class Line : public FuzzLine {
 public:
  explicit Line(uint64_t seed) : FuzzLine(seed) {
    mx_ = chance(0.35);
    set("dtype", mx_ ? one_of({"e4m3", "e5m2"}) : one_of({"bf16", "fp16"}));
    if (mx_ && chance(0.3)) set("b_dtype", one_of({"e4m3", "e5m2"}));
    set("out", one_of({"same", "same", "bf16", "fp16", "fp32"}));
    axis_ = one_of({"rows", "rows", "columns", "k", "k", "none"});
    set("axis", axis_);
    shape();
    if (axis_ != "none") offsets();
    layout();
    values();
    if (mx_) scales();
  }

 private:
  int64_t size(int64_t most) {
    // Near the edges of tiles as often as any others.
    return chance(0.5)
               ? random().between(1, most)
               : std::min(most, one_of_numbers({1, 8, 16, 32, 64, 128, 192, 256, 384, 512}) +
                                    random().between(-1, 1));
  }
  void shape() {
    m_ = size(axis_ == "rows" ? 700 : 300);
    n_ = size(axis_ == "columns" ? 700 : 300);
    k_ = chance(0.02) ? 0 : size(axis_ == "k" ? 900 : 300);
    aligned_ = chance(0.6);  // what fast instances take
    if (aligned_) {
      n_ = (n_ + 7) / 8 * 8;
      k_ = (k_ + 7) / 8 * 8;
      m_ = (m_ + 7) / 8 * 8;
    }
    if (mx_) {
      const int64_t whole = aligned_ ? one_of_numbers({128, 256}) : 32;
      k_ = (k_ + whole - 1) / whole * whole;
    }
    // What takes the oracle a second or so.
    const int64_t most_groups =
        std::max<int64_t>(1, 12'000'000 / std::max<int64_t>(1, m_ * n_ * k_));
    groups_ = random().between(1, std::min<int64_t>(axis_ == "none" ? 6 : 12, most_groups));
    if (axis_ == "none") number("groups", groups_);
    number("m", m_);
    number("n", n_);
    number("k", k_);
  }
  static std::string list(const std::vector<int64_t> &numbers) {
    std::string text;
    for (const int64_t number : numbers)
      text.append(text.empty() ? "" : ",").append(std::to_string(number));
    return text;
  }
  void offsets() {
    const int64_t end = axis_ == "rows" ? m_ : axis_ == "columns" ? n_ : k_;
    if (chance(0.1) && axis_ != "k") {
      set("offsets", "random:" + std::to_string(random().between(60, 200)));
    } else if (chance(0.1)) {  // not as they are meant to be
      std::vector<int64_t> numbers;
      for (int64_t g = 0; g < groups_; ++g) numbers.push_back(random().between(-20, 2 * end));
      set("offsets", list(numbers));
    } else {
      std::vector<int64_t> ends;
      for (int64_t g = 0; g < groups_; ++g) ends.push_back(random().between(0, end));
      if (chance(0.3)) ends.back() = end;
      if (chance(0.3)) ends[0] = 0;
      if (groups_ > 2 && chance(0.4)) ends[1] = ends[2];
      std::sort(ends.begin(), ends.end());
      set("offsets", list(ends));
    }
    if (chance(0.4)) set("offsets_dtype", "int64");
  }
  void layout() {
    if (chance(mx_ && aligned_ ? 0.1 : 0.4)) set("a_order", "km");
    if (chance(mx_ && aligned_ ? 0.9 : 0.6)) set("b_order", "nk");
    if (chance(0.15)) set("d_order", "nm");
    if (aligned_) {
      for (const char *tensor : {"a", "b"})
        place(tensor, {"random16", "slack", mx_ ? "pitch:16" : "pitch:8"});
      place("d", {"slack", "offset:", "pitch:"});
    } else {
      for (const char *tensor : {"a", "b", "d"})
        place(tensor, {"random", "random16", "slack", "offset:", "pitch:"});
    }
    if (chance(0.3)) {
      set("bias_dtype", one_of({"bf16", "fp16", "fp32"}));
      if (axis_ != "columns" && chance(0.6)) set("bias_axes", "gn");
      place("bias", {"random", "slack", "offset:"});
    }
  }
  void values() {
    if (chance(0.2)) {
      set("a", "int");
      set("b", "int");
      set("bias", "int");
    } else if (mx_ && chance(0.3)) {
      set("a", "bits");
      set("b", "bits");
    } else if (chance(0.3)) {
      set("varied", "yes");
    } else if (chance(0.1)) {
      set("a", one_of({"1", "0", "normal*100", "channel%7/8"}));
    }
    if (axis_ != "none" && chance(0.5)) set("nan_outside", "yes");
    if (chance(0.1)) number(one_of({"nan_a", "nan_b", "inf_a", "inf_b"}), random().between(1, 3));
    if (chance(0.1)) number("repeat", 2);
  }

  void scales() {
    if (chance(0.5)) set("scales", "shuffled");
    for (const std::string name : {"a", "b"}) {
      if (chance(0.2)) set(name + "_scales", one_of({"127:127", "100:154", "125:129"}));
      if (chance(0.1)) set(name + "_scale_order", "along_rows");
      place(name + "_scale", {"offset:", "slack"});
      if (chance(0.05)) number("nan_" + name + "_scale", 1);
      if (chance(0.05)) number("zero_" + name + "_scale", random().between(1, 9));
    }
  }

  std::string axis_;
  bool mx_ = false;
  int64_t m_ = 1, n_ = 1, k_ = 1, groups_ = 1;
  bool aligned_ = false;
};

}  // namespace

std::string fuzz_grouped_gemm_line(uint64_t seed) {
  return Line(seed).text();
}

}  // namespace flydsl::verify
