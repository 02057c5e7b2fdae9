#include "tools/report/chrome_trace.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "tools/report/format.h"

namespace flydsl::tools {
namespace {

// "Trace Event Format" (Google): ph X is a complete event, M metadata; ts and dur are microseconds.
// Events of one track must nest, which in both viewers means: not overlap.
class Writer {
 public:
  explicit Writer(double microseconds_per_clock) : scale_(microseconds_per_clock) {}

  void name_process(unsigned process, const std::string &name) {
    metadata("process_name", process, 0, name);
  }
  void name_track(unsigned process, unsigned track, const std::string &name) {
    metadata("thread_name", process, track, name);
  }
  void event(unsigned process, unsigned track, double begin, double end,
             const ProfiledOperation &operation, const std::string &category) {
    separate();
    text_ +=
        format("{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,\"cat\":", process,
               track, begin * scale_, (end - begin) * scale_);
    text_ += quoted(category) +
             ",\"name\":" + quoted(operation.text.substr(0, operation.text.find(' ')));
    text_ += ",\"args\":{\"instruction\":" + quoted(operation.text);
    text_ += format(",\"offset\":\"0x%llx\",\"clock\":%.0f",
                    static_cast<unsigned long long>(operation.offset), begin);
    if (!operation.source.empty()) text_ += ",\"source\":" + quoted(operation.source);
    text_ += "}}";
  }
  std::string &&take() { return std::move(text_); }

 private:
  static std::string quoted(const std::string &text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void separate() {
    if (!text_.empty()) text_ += ",\n";
  }
  void metadata(const char *what, unsigned process, unsigned track, const std::string &name) {
    separate();
    text_ +=
        format("{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":", process,
               track, what) +
        quoted(name) + "}}";
  }

  double scale_;
  std::string text_;
};

// The model counts matrix instructions among the vector ones, but they run beside each other.
std::string unit_of(const TimelineEvent &event, const ProfiledOperation &operation) {
  const bool matrix =
      operation.text.starts_with("v_mfma") || operation.text.starts_with("v_smfmac");
  return matrix ? "matrix" : event.category;
}

}  // namespace

std::string chrome_trace(const TimingReport &report, size_t limit) {
  const std::vector<TimelineEvent> &timeline = report.timeline;
  std::vector<size_t> order(timeline.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return timeline[a].begin < timeline[b].begin; });
  const bool truncated = report.timeline_truncated || order.size() > limit;
  order.resize(std::min(order.size(), limit));

  Writer writer(1e6 / report.clock_hz);
  // Waves. What an instruction occupies may outlast the next one's issue: it is shown until then, so
  // that a gap is a wait.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<size_t>> waves;
  for (const size_t index : order)
    waves[{timeline[index].simd, timeline[index].wave}].push_back(index);
  uint32_t named_simd = UINT32_MAX, units_process = 1;
  for (const auto &[place, indices] : waves) {
    const auto [simd, wave] = place;
    if (simd != named_simd) writer.name_process(simd + 1, format("SIMD %u (modelled)", simd));
    named_simd = simd;
    units_process = std::max(units_process, simd + 2);
    writer.name_track(simd + 1, wave + 1, format("wave %u", wave));
    for (size_t i = 0; i < indices.size(); ++i) {
      const TimelineEvent &event = timeline[indices[i]];
      const double end =
          i + 1 < indices.size() ? std::min(event.end, timeline[indices[i + 1]].begin) : event.end;
      writer.event(simd + 1, wave + 1, event.begin, end, report.profile[event.operation],
                   event.category);
    }
  }

  // Units: as many tracks as have to run at once.
  struct Track {
    unsigned id;
    double free_from;
  };
  std::map<std::pair<std::string, uint32_t>, std::vector<Track>> units;
  unsigned tracks = 0;
  writer.name_process(units_process, "units (modelled)");
  for (const size_t index : order) {
    const TimelineEvent &event = timeline[index];
    const ProfiledOperation &operation = report.profile[event.operation];
    const std::string name = unit_of(event, operation);
    std::vector<Track> &unit = units[{name, event.simd}];
    auto track = std::find_if(unit.begin(), unit.end(),
                              [&](const Track &t) { return t.free_from <= event.begin; });
    if (track == unit.end()) {
      track = unit.insert(track, {++tracks, 0});
      writer.name_track(units_process, tracks,
                        format("%s, SIMD %u", name.c_str(), event.simd) +
                            (unit.size() > 1 ? format(" (%zu)", unit.size()) : ""));
    }
    track->free_from = event.end;
    writer.event(units_process, track->id, event.begin, event.end, operation, name);
  }

  const Json about = {{"modelled", true},
                      {"arch", report.arch},
                      {"kernel", report.kernel},
                      {"constants_hash", report.constants_hash},
                      {"clock_hz", report.clock_hz},
                      {"events", order.size()},
                      {"truncated", truncated}};
  return "{\"displayTimeUnit\":\"ns\",\"otherData\":" + about.dump() + ",\"traceEvents\":[\n" +
         writer.take() + "\n]}\n";
}

}  // namespace flydsl::tools
