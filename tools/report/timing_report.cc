#include "tools/report/timing_report.h"

#include <algorithm>
#include <stdexcept>

namespace flydsl::tools {
namespace {

[[noreturn]] void fail(const std::string &message) {
  throw std::runtime_error("the timing model's report " + message);
}

const Json &member(const Json &object, const char *key) {
  if (!object.is_object()) fail(std::string("has no object that holds '") + key + "'");
  const auto found = object.find(key);
  if (found == object.end()) fail(std::string("has no '") + key + "'");
  return *found;
}

double number_of(const Json &value, const std::string &key) {
  if (!value.is_number()) fail("has no number in '" + key + "'");
  return value.get<double>();
}
double number(const Json &object, const char *key) {
  return number_of(member(object, key), key);
}

uint64_t count_of(const Json &value, const std::string &key) {
  if (!value.is_number_unsigned()) fail("has no count in '" + key + "'");
  return value.get<uint64_t>();
}
uint64_t count(const Json &object, const char *key) {
  return count_of(member(object, key), key);
}

std::string text(const Json &object, const char *key) {
  const Json &value = member(object, key);
  if (!value.is_string()) fail(std::string("has no text in '") + key + "'");
  return value.get<std::string>();
}

const Json &named(const Json &object, const char *key) {
  const Json &value = member(object, key);
  if (!value.is_object()) fail(std::string("has no object in '") + key + "'");
  return value;
}

const Json &list(const Json &object, const char *key) {
  const Json &value = member(object, key);
  if (!value.is_array()) fail(std::string("has no list in '") + key + "'");
  return value;
}

NamedValues named_values(const Json &object, const char *key) {
  NamedValues result;
  for (const auto &[name, value] : named(object, key).items())
    result.emplace_back(name, number_of(value, std::string(key) + "." + name));
  return result;
}

NamedValues largest_first(NamedValues values) {
  std::erase_if(values, [](const auto &value) { return value.second == 0; });
  std::sort(values.begin(), values.end(), [](const auto &a, const auto &b) {
    return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
  });
  return values;
}

void read_extent(const Json &object, const char *key, uint64_t (&extent)[3]) {
  const Json &values = list(object, key);
  if (values.size() != 3) fail(std::string("has no three sizes in '") + key + "'");
  for (size_t i = 0; i < 3; ++i) extent[i] = count_of(values[i], key);
}

void read_detail(const Json &json, TimingReport &report) {
  for (const Json &entry : list(json, "profile")) {
    ProfiledOperation operation;
    operation.offset = count(entry, "offset");
    operation.text = text(entry, "text");
    operation.source = text(entry, "source");
    operation.issued = count(entry, "issued");
    operation.stalls = largest_first(named_values(entry, "stalls"));
    for (const auto &stall : operation.stalls) operation.stall_clocks += stall.second;
    report.profile.push_back(std::move(operation));
  }
  for (const Json &entry : list(json, "timeline")) {
    TimelineEvent event;
    event.begin = number(entry, "begin");
    event.end = number(entry, "end");
    event.operation = count(entry, "op");
    event.simd = static_cast<uint32_t>(count(entry, "simd"));
    event.wave = static_cast<uint32_t>(count(entry, "wave"));
    event.category = text(entry, "category");
    if (event.operation >= report.profile.size())
      fail("has a timeline event of operation " + std::to_string(event.operation) + " of " +
           std::to_string(report.profile.size()));
    if (!(event.begin <= event.end)) fail("has a timeline event that ends before it begins");
    report.timeline.push_back(std::move(event));
  }
  report.timeline_truncated = json.value("timeline_truncated", false);
}

void read_launches(const Json &json, TimingReport &report) {
  for (const Json &entry : list(json, "launches")) {
    LaunchReport launch;
    launch.kernel = text(entry, "kernel");
    read_extent(entry, "grid", launch.grid);
    launch.seconds = number(entry, "seconds");
    launch.tflops = number(entry, "tflops");
    launch.hbm_gb_per_s = number(entry, "hbm_gb_per_s");
    report.launches.push_back(std::move(launch));
  }
  report.longest = count(json, "longest_launch");
  if (report.longest >= report.launches.size())
    fail("has 'longest_launch' " + std::to_string(report.longest) + " of " +
         std::to_string(report.launches.size()));
}

void read_problem(const Json &json, TimingReport &report) {
  report.op = text(json, "operator");
  report.backend = text(json, "backend");
  report.data = text(json, "data");
  for (const auto &[name, value] : named(json, "inputs").items())
    report.inputs.emplace_back(name, text(json.at("inputs"), name.c_str()));
  report.settings = list(json, "settings").get<std::vector<std::string>>();
  report.problem_flops = number(json, "problem_flops");
  report.problem_tflops = number(json, "problem_tflops");
  if (!json.contains("peers")) return;
  for (const Json &entry : list(json, "peers")) {
    PeerReport peer;
    peer.peer = text(entry, "peer");
    if (entry.contains("refused")) {
      peer.refused = text(entry, "refused");
    } else {
      peer.kernel = text(entry, "kernel");
      peer.seconds = number(entry, "seconds");
      peer.problem_tflops = number(entry, "problem_tflops");
      peer.matrix_flops = number(entry, "matrix_flops");
      peer.hbm_bytes = number(entry, "hbm_bytes");
    }
    report.peers.push_back(std::move(peer));
  }
}

}  // namespace

TimingReport parse_timing_report(const Json &json) {
  TimingReport report;
  if (const Json &modelled = member(json, "modelled");
      !modelled.is_boolean() || !modelled.get<bool>())
    fail("does not say that it is modelled");
  report.kernel = text(json, "kernel");
  report.arch = text(json, "arch");
  report.constants_hash = text(json, "constants_hash");
  report.extrapolation = text(json, "extrapolation");
  read_extent(json, "grid", report.grid);
  read_extent(json, "block", report.block);
  report.seconds = number(json, "seconds");
  report.clocks = number(json, "clocks");
  report.clock_hz = number(json, "clock_hz");
  report.matrix_flops = number(json, "matrix_flops");
  report.tflops = number(json, "tflops");
  report.share_of_peak = number(json, "share_of_peak");
  report.hbm_bytes = number(json, "hbm_bytes");
  report.hbm_gb_per_s = number(json, "hbm_gb_per_s");
  report.l2_hit_rate = number(json, "l2_hit_rate");
  report.idle = number(json, "idle");
  const Json &peak = named(json, "peak");
  report.peak_tflops = number(peak, "tflops");
  report.peak_hbm_gb_per_s = number(peak, "hbm_gb_per_s");
  report.utilisation = named_values(json, "utilisation");
  const Json &occupancy = named(json, "occupancy");
  report.groups_per_compute_unit = count(occupancy, "groups_per_compute_unit");
  report.waves_per_simd = count(occupancy, "waves_per_simd");
  report.occupancy_limit = text(occupancy, "limit");
  report.groups = count(json, "groups");
  report.groups_sampled = count(json, "groups_sampled");
  for (const auto &[name, value] : named(json, "lds_hypotheses").items())
    report.lds_hypotheses.push_back({name, number(value, "seconds"), number(value, "tflops")});
  report.stalls = largest_first(named_values(json, "stalls"));
  if (json.contains("profile")) read_detail(json, report);
  if (json.contains("launches")) read_launches(json, report);
  if (json.contains("operator")) read_problem(json, report);
  return report;
}

}  // namespace flydsl::tools
