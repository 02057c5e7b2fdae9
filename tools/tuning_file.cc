#include "tools/tuning_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tools/exit_status.h"
#include "tools/output_file.h"

namespace flydsl::tools {
namespace {

using SortedJson = nlohmann::json;  // members in alphabetical order

constexpr size_t kProblemFields = 5;  // rows, keys, parallel, alignment, compute_units

// "key", "problem", "compute_units", "default" and "case"
SortedJson row_without_figures(const TunedCase &tuned) {
  SortedJson row;
  row["case"] = tuned.text;
  row["default"] = tuned.first;
  std::istringstream stream(tuned.problem);
  const std::vector<std::string> fields(std::istream_iterator<std::string>(stream), {});
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t equals = fields[i].find('=');
    const std::string name = fields[i].substr(0, equals);
    const uint64_t value = std::stoull(fields[i].substr(equals + 1));
    if (i + kProblemFields < fields.size()) {
      row["key"][name] = value;
    } else if (name == "compute_units") {
      row[name] = value;
    } else {
      row["problem"][name] = value;
    }
  }
  return row;
}

bool is_text(const SortedJson &row, const char *field) {
  return row.contains(field) && row[field].is_string();
}

}  // namespace

std::string row_of(const TunedCase &tuned) {
  std::vector<std::pair<double, std::string>> order;
  SortedJson row = row_without_figures(tuned);
  for (const auto &[kernel, figure] : tuned.figures) {
    const double rounded = std::max(0.001, std::round(figure * 1000) / 1000);
    row["figures_us"][kernel] = rounded;
    // Of equal ones the one that is taken anyway.
    order.emplace_back(rounded, kernel == tuned.first ? "" : kernel);
  }
  std::sort(order.begin(), order.end());
  const auto kernel_at = [&](size_t i) {
    return order[i].second.empty() ? tuned.first : order[i].second;
  };
  row["winner"] = kernel_at(0);
  row["runner_up"] = order.size() > 1 ? SortedJson(kernel_at(1)) : SortedJson();
  row["origin"] = tuned.origin;
  return row.dump();
}

bool is_current(const std::string &row, const TunedCase &now,
                const std::set<std::string> &kernels) {
  const SortedJson then = SortedJson::parse(row, nullptr, false), fields = row_without_figures(now);
  for (const auto &[name, value] : fields.items())
    if (!then.contains(name) || then[name] != value) return false;
  if (!then.contains("figures_us") || !then["figures_us"].is_object()) return false;
  for (const auto &[kernel, figure] : then["figures_us"].items())
    if (!kernels.count(kernel)) return false;
  return true;
}

TuningFile::TuningFile(const std::string &path, bool resume) : path_(path) {
  std::ifstream stream(path, std::ios::binary);
  if (stream && !resume) bad_input("--out " + path + ": exists; --resume goes on with it");
  const std::string all(std::istreambuf_iterator<char>(stream), {});
  for (size_t at = 0; at < all.size();) {
    const size_t end = all.find('\n', at);
    if (end == std::string::npos) break;  // torn
    const std::string line = all.substr(at, end - at);
    at = end + 1;
    const SortedJson row = SortedJson::parse(line, nullptr, false);
    if (!row.is_object() || !is_text(row, "case") || !is_text(row, "origin"))
      bad_input("--out " + path + ": '" + line.substr(0, 80) + "' is no tuning row");
    rows_[row["case"].get<std::string>()] = line;
    origin_ = row["origin"].get<std::string>();
  }
  finish();
}

const std::string *TuningFile::find(const std::string &case_text) const {
  const auto row = rows_.find(case_text);
  return row == rows_.end() ? nullptr : &row->second;
}

void TuningFile::add(const TunedCase &tuned) {
  if (!origin_.empty() && tuned.origin != origin_) {
    bad_input("--out " + path_ + ": holds figures of " + origin_ + ", those of now are of " +
              tuned.origin + "; they need a file of their own");
  }
  const std::string row = row_of(tuned), line = row + "\n";
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const ssize_t written = file < 0 ? -1 : write(file, line.data(), line.size());
  const int reason = written < 0 ? errno : ENOSPC;  // half a row: the next write would have said so
  if (file >= 0) close(file);
  if (written != static_cast<ssize_t>(line.size()))
    throw ToolError(kExitFailure, "--out " + path_ + ": " + std::strerror(reason));
  origin_ = tuned.origin;
  rows_[tuned.text] = row;
}

void TuningFile::finish() {
  try {
    OutputFile file(path_);
    std::set<std::string> sorted;
    for (const auto &[text, row] : rows_) sorted.insert(row);
    for (const std::string &row : sorted) file.write(row + "\n");
    file.commit();
  } catch (const std::runtime_error &error) {
    bad_input("--out " + path_ + ": " + error.what());
  }
}

}  // namespace flydsl::tools
