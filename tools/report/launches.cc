#include "tools/report/launches.h"

#include <algorithm>

#include "tools/report/format.h"

namespace flydsl::tools {
namespace {

double sum(const std::vector<Json> &launches, const char *key) {
  double total = 0;
  for (const Json &launch : launches) total += launch.at(key).get<double>();
  return total;
}

// Of values that are per second, or per byte: weighted with those.
double mean(const std::vector<Json> &launches, const char *key, const char *weight) {
  double total = 0;
  for (const Json &launch : launches)
    total += launch.at(key).get<double>() * launch.at(weight).get<double>();
  const double weights = sum(launches, weight);
  return weights > 0 ? total / weights : 0;
}

Json sum_hypotheses(const std::vector<Json> &launches, double matrix_flops) {
  Json result = Json::object();
  for (const auto &[name, value] : launches[0].at("lds_hypotheses").items()) {
    std::vector<Json> parts;
    for (const Json &launch : launches) parts.push_back(launch.at("lds_hypotheses").at(name));
    const double seconds = sum(parts, "seconds");
    result[name] = {{"seconds", seconds}, {"tflops", matrix_flops / seconds * 1e-12}};
    if (value.contains("clock_hz")) result[name]["clock_hz"] = mean(parts, "clock_hz", "seconds");
  }
  return result;
}

}  // namespace

size_t longest_launch(const std::vector<Json> &launches) {
  size_t longest = 0;
  for (size_t i = 1; i < launches.size(); ++i)
    if (launches[i].at("seconds").get<double>() > launches[longest].at("seconds").get<double>())
      longest = i;
  return longest;
}

Json join_launches(const std::vector<Json> &launches, const Json &longest) {
  Json call = longest;
  if (launches.size() == 1) return call;
  const double seconds = sum(launches, "seconds"), matrix_flops = sum(launches, "matrix_flops");
  for (const char *key : {"seconds", "clocks", "matrix_flops", "hbm_bytes", "l2_bytes"})
    call[key] = sum(launches, key);
  call["clock_hz"] = call["clocks"].get<double>() / seconds;
  call["tflops"] = matrix_flops / seconds * 1e-12;
  // A launch's share is what its flops would take at its peak, over its seconds.
  call["share_of_peak"] = mean(launches, "share_of_peak", "seconds");
  call["peak"] =
      std::max_element(launches.begin(), launches.end(), [](const Json &a, const Json &b) {
        return a.at("matrix_flops").get<double>() < b.at("matrix_flops").get<double>();
      })->at("peak");
  call["hbm_gb_per_s"] = call["hbm_bytes"].get<double>() / seconds * 1e-9;
  call["l2_hit_rate"] = mean(launches, "l2_hit_rate", "l2_bytes");
  call["lds_hypotheses"] = sum_hypotheses(launches, matrix_flops);
  call["launches"] = launches;
  call["longest_launch"] = longest_launch(launches);
  return call;
}

Json only_longest_launch(Json call) {
  if (!call.contains("launches")) return call;
  const Json launch = call["launches"].at(call["longest_launch"].get<size_t>());
  for (const auto &[key, value] : launch.items()) call[key] = value;
  call.erase("launches");
  call.erase("longest_launch");
  return call;
}

std::string launches_text(const TimingReport &report) {
  std::string text;
  if (report.launches.empty()) return text;
  text += format(
      "%-11s%zu, one after the other: time, speed, matrix, memory and LDS above are of all, the "
      "rest of %s\n",
      "launches", report.launches.size(), which_launch(report).c_str());
  for (size_t i = 0; i < report.launches.size(); ++i) {
    const LaunchReport &launch = report.launches[i];
    text += format(
        "%-11s%s modelled, %s, %llu x %llu x %llu work-groups, matrix %.1f TFLOP/s, HBM %.1f "
        "GB/s\n",
        format("launch %zu", i + 1).c_str(), duration(launch.seconds).c_str(),
        launch.kernel.c_str(), static_cast<unsigned long long>(launch.grid[0]),
        static_cast<unsigned long long>(launch.grid[1]),
        static_cast<unsigned long long>(launch.grid[2]), launch.tflops, launch.hbm_gb_per_s);
  }
  return text;
}

std::string which_launch(const TimingReport &report) {
  if (report.launches.empty()) return "";
  return format("launch %zu of %zu, the longest", report.longest + 1, report.launches.size());
}

std::string kernel_names(const TimingReport &report) {
  if (report.launches.empty()) return report.kernel;
  std::string names;
  for (const LaunchReport &launch : report.launches)
    names += (names.empty() ? "" : ", ") + launch.kernel;
  return names;
}

}  // namespace flydsl::tools
