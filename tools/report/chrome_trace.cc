#include "tools/report/chrome_trace.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tools/report/format.h"

namespace flydsl::tools {
namespace {

// "Trace Event Format" (Google): ph X is a complete event, M metadata; ts and dur are microseconds.
// Events of one track must nest, which in both viewers means: not overlap. Viewers round to
// nanoseconds, which are longer than a clock: a clock is shown as a microsecond.
class Writer {
 public:
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
        format("{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"cat\":", process,
               track, begin, end - begin);
    text_ += quoted(category) +
             ",\"name\":" + quoted(operation.text.substr(0, operation.text.find(' ')));
    text_ += ",\"args\":{\"instruction\":" + quoted(operation.text);
    text_ += format(",\"offset\":\"0x%llx\"", static_cast<unsigned long long>(operation.offset));
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

  std::string text_;
};

using Order = std::vector<size_t>;  // indices of events, by begin
constexpr const char *kClocks = "(modelled, 1 us is 1 clock)";

// A process a SIMD, a track a wave. What an instruction occupies may outlast the wave's next issue: it
// is shown until then, so that a gap is a wait. Returns the number of processes.
unsigned add_waves(Writer &writer, const TimingReport &report, const Order &order) {
  const std::vector<TimelineEvent> &timeline = report.timeline;
  std::map<uint32_t, std::map<uint32_t, Order>> simds;
  for (const size_t index : order)
    simds[timeline[index].simd][timeline[index].wave].push_back(index);
  unsigned process = 0;
  for (const auto &[simd, waves] : simds) {
    writer.name_process(++process, format("SIMD %u %s", simd, kClocks));
    for (const auto &[wave, indices] : waves) {
      writer.name_track(process, wave + 1, format("wave %u", wave));
      for (size_t i = 0; i < indices.size(); ++i) {
        const TimelineEvent &event = timeline[indices[i]];
        const double next = i + 1 < indices.size() ? timeline[indices[i + 1]].begin : event.end;
        writer.event(process, wave + 1, event.begin, std::min(event.end, next),
                     report.profile[event.operation], event.category);
      }
    }
  }
  return process;
}

// A process a unit: one for each SIMD, or one for all where the compute unit has one, and where an
// instruction ends with its data. As many tracks as have to run at once.
std::string unit_of(const TimelineEvent &event, const ProfiledOperation &operation) {
  if (event.category == "lds" || event.category == "vector memory")
    return event.category + " in flight";
  // The model counts matrix instructions among the vector ones, but they run beside each other.
  const bool matrix =
      operation.text.starts_with("v_mfma") || operation.text.starts_with("v_smfmac");
  return format("SIMD %u ", event.simd) + (matrix ? "matrix" : event.category);
}

void add_units(Writer &writer, const TimingReport &report, const Order &order, unsigned process) {
  std::map<std::string, Order> units;
  for (const size_t index : order) {
    const TimelineEvent &event = report.timeline[index];
    units[unit_of(event, report.profile[event.operation])].push_back(index);
  }
  for (const auto &[unit, indices] : units) {
    writer.name_process(++process, unit + " " + kClocks);
    std::vector<double> free_from;  // by track
    for (const size_t index : indices) {
      const TimelineEvent &event = report.timeline[index];
      const auto free = std::find_if(free_from.begin(), free_from.end(),
                                     [&](double clock) { return clock <= event.begin; });
      const auto track = static_cast<unsigned>(free - free_from.begin()) + 1;
      if (free == free_from.end()) {
        free_from.push_back(0);
        writer.name_track(process, track, unit + format(" %u", track));
      }
      free_from[track - 1] = event.end;
      writer.event(process, track, event.begin, event.end, report.profile[event.operation],
                   event.category);
    }
  }
}

}  // namespace

std::string chrome_trace(const TimingReport &report, size_t limit) {
  Order order(report.timeline.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(report.timeline[a].begin, a) < std::pair(report.timeline[b].begin, b);
  });
  const bool truncated = report.timeline_truncated || order.size() > limit;
  order.resize(std::min(order.size(), limit));

  Writer writer;
  const unsigned processes = add_waves(writer, report, order);
  add_units(writer, report, order, processes);
  const Json about = {{"modelled", true},
                      {"arch", report.arch},
                      {"kernel", report.kernel},
                      {"constants_hash", report.constants_hash},
                      {"clock_hz", report.clock_hz},
                      {"shown", "1 us is 1 clock"},
                      {"events", order.size()},
                      {"truncated", truncated}};
  return "{\"displayTimeUnit\":\"ns\",\"otherData\":" + about.dump() + ",\"traceEvents\":[\n" +
         writer.take() + "\n]}\n";
}

}  // namespace flydsl::tools
