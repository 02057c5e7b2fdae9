#include "emulator/timing/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "emulator/engine/program_impl.h"
#include "emulator/timing/costs.h"

namespace flydsl::emu::timing {
namespace {

constexpr double kTera = 1e-12, kGiga = 1e-9;

// Members and elements in the order in which they are added.
class JsonWriter {
 public:
  const std::string &text() const { return text_; }

  JsonWriter &key(const char *name) {
    separate();
    quote(name);
    text_ += ": ";
    fresh_ = true;
    return *this;
  }
  void open(char bracket) {
    separate();
    text_ += bracket;
    fresh_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    fresh_ = false;
  }
  void value(double x) {
    // Whatever the locale; JSON knows no infinity.
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, std::isfinite(x) ? x : 0.0,
                                   std::chars_format::general, 10);
    separate();
    text_.append(digits, end.ptr);
  }
  void value(uint64_t x) {
    separate();
    text_ += std::to_string(x);
  }
  void value(bool x) {
    separate();
    text_ += x ? "true" : "false";
  }
  void value(const std::string &x) {
    separate();
    quote(x);
  }

 private:
  void separate() {
    if (!fresh_) text_ += ", ";
    fresh_ = false;
  }
  void quote(const std::string &x) {
    text_ += '"';
    for (const char c : x) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (uint8_t(c) < 0x20) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", unsigned(uint8_t(c)));
        text_ += escape;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
  bool fresh_ = true;  // nothing to separate from
};

void add_extent(JsonWriter &json, const char *name, const uint32_t *extent) {
  json.key(name).open('[');
  for (int axis = 0; axis < 3; ++axis) json.value(uint64_t(extent[axis]));
  json.close(']');
}

double tflops(double flops, double seconds) {
  return seconds > 0 ? flops / seconds * kTera : 0;
}

void add_stalls(JsonWriter &json, const double *clocks, double total) {
  json.key("stalls").open('{');
  for (unsigned n = 1; n < unsigned(Stall::kCount); ++n)
    if (clocks[n] > 0) json.key(stall_name(Stall(n))).value(total > 0 ? clocks[n] / total : 0);
  json.close('}');
}

void add_summary(JsonWriter &json, const LaunchModel &m) {
  json.key("modelled").value(true);
  json.key("kernel").value(m.kernel);
  json.key("arch").value(m.arch);
  add_extent(json, "grid", m.grid);
  add_extent(json, "block", m.block);
  json.key("constants_hash").value(m.constants_hash);
  json.key("seconds").value(m.seconds);
  json.key("clocks").value(m.clocks);
  json.key("clock_hz").value(m.clock_hz);
  json.key("matrix_flops").value(m.matrix_flops);
  json.key("tflops").value(tflops(m.matrix_flops, m.seconds));
  json.key("share_of_peak").value(m.share_of_peak);
  json.key("peak").open('{');
  json.key("tflops").value(m.peak_flops * kTera);
  json.key("hbm_gb_per_s").value(m.peak_hbm_bytes_per_second * kGiga);
  json.close('}');
  json.key("hbm_bytes").value(m.hbm_bytes);
  json.key("hbm_gb_per_s").value(m.seconds > 0 ? m.hbm_bytes / m.seconds * kGiga : 0);
  json.key("bound_by_hbm").value(m.bound_by_hbm);
  json.key("l2_bytes").value(m.l2_bytes);
  json.key("l2_hit_rate").value(m.l2_hit_rate);
  json.key("utilisation").open('{');
  json.key("mfma").value(m.matrix);
  json.key("valu").value(m.vector);
  json.key("transcendental").value(m.transcendental);
  json.key("salu").value(m.scalar);
  json.key("lds").value(m.lds);
  json.key("vmem").value(m.vector_memory);
  json.close('}');
  json.key("idle").value(m.idle);
  if (!m.ordering.empty()) {
    json.key("ordering").open('{');
    json.key("rule").value(m.ordering);
    json.key("waiting_clocks").value(m.waiting_clocks);
    json.key("waiting_share").value(m.waiting_share);
    json.key("seconds_without_waiting").value(m.seconds_without_waiting);
    json.close('}');
  }
  json.key("occupancy").open('{');
  json.key("groups_per_compute_unit").value(uint64_t(m.occupancy.groups_per_compute_unit));
  json.key("waves_per_simd").value(uint64_t(m.occupancy.waves_per_simd));
  json.key("limit").value(std::string(m.occupancy.limit));
  json.close('}');
  json.key("groups").value(m.groups);
  json.key("groups_sampled").value(m.groups_sampled);
  json.key("extrapolation").value(m.extrapolation);
  json.key("lds_hypotheses").open('{');
  for (const LdsHypothesis &hypothesis : m.lds_hypotheses) {
    json.key(std::to_string(int(hypothesis.bytes_per_clock)).c_str()).open('{');
    json.key("seconds").value(hypothesis.seconds);
    json.key("tflops").value(tflops(m.matrix_flops, hypothesis.seconds));
    json.key("clock_hz").value(hypothesis.clock_hz);
    json.close('}');
  }
  json.close('}');
  add_stalls(json, m.detail.stall_clocks, m.detail.wave_clocks);
}

void add_detail(JsonWriter &json, const LaunchModel &m, const Program &program) {
  // The kernel's code: from the first operation that was issued to the last.
  const auto &profile = m.detail.profile;
  const auto issued = [](const OpProfile &op) { return op.issued != 0; };
  const size_t first =
      size_t(std::find_if(profile.begin(), profile.end(), issued) - profile.begin());
  size_t last = profile.size();
  while (last > first && !issued(profile[last - 1])) --last;

  json.key("representative").value(m.representative);
  json.key("profile").open('[');
  for (size_t op = first; op < last; ++op) {
    json.open('{');
    json.key("offset").value(uint64_t(program.offsets[op]));
    json.key("text").value(program.text_of(uint32_t(op)));
    json.key("source").value(source_line(program, program.offsets[op]));
    json.key("issued").value(profile[op].issued);
    add_stalls(json, profile[op].stall_clocks, 1);
    json.close('}');
  }
  json.close(']');
  json.key("timeline").open('[');
  for (const TimelineEvent &event : m.detail.timeline) {
    json.open('{');
    json.key("begin").value(event.begin);
    json.key("end").value(event.end);
    json.key("op").value(uint64_t(event.op - first));
    json.key("simd").value(uint64_t(event.simd));
    json.key("wave").value(uint64_t(event.wave));
    json.key("category").value(std::string(category_name(Category(event.category))));
    json.close('}');
  }
  json.close(']');
  json.key("timeline_truncated").value(m.timeline_truncated);
}

}  // namespace

std::string launch_json(const LaunchModel &model, const Program &program, bool detail) {
  JsonWriter json;
  json.open('{');
  add_summary(json, model);
  if (detail) add_detail(json, model, program);
  json.close('}');
  return json.text();
}

}  // namespace flydsl::emu::timing
