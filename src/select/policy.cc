#include "src/select/policy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace flydsl::select {
namespace {

constexpr std::string_view kBackends[] = {"native", "aiter", "triton", "flydsl", "jit"};

// The names of a list; false where one is empty.
bool split(const char *list, std::vector<std::string_view> *names) {
  for (std::string_view rest = list;;) {
    const size_t comma = rest.find(',');
    names->push_back(rest.substr(0, comma));
    if (names->back().empty()) return false;
    if (comma == std::string_view::npos) return true;
    rest.remove_prefix(comma + 1);
  }
}

// `wrong`: the name that is none; empty: one of the list is.
Status refuse(const NameList &list, std::string_view wrong, const std::string &allowed) {
  const std::string which =
      wrong.empty() || wrong == list.names
          ? std::string()
          : text("'%.*s' is none; ", static_cast<int>(std::min<size_t>(wrong.size(), 160)),
                 wrong.data());
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "%s is '%.160s'; %s%s", list.source, list.names,
               which.c_str(), allowed.c_str());
}

// How many characters have to be added, taken away or exchanged to make one of the other (Levenshtein). None if it is a part.
size_t distance(std::string_view a, std::string_view b) {
  if (b.find(a) != std::string_view::npos) return 0;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// "; nearest: 'a', 'b', 'c'" of the kernels whose names are like `wrong`; "" if none is.
std::string nearest(const archive::Archive &archive, std::string_view wrong) {
  constexpr size_t kMostNames = 3, kMostBytes = 256;
  std::vector<std::pair<size_t, const char *>> names;
  if (wrong.size() > kMostBytes) return {};
  for (const archive::Entry &entry : archive.entries()) {
    const char *name = archive.string(entry.name);
    if (const size_t far = distance(wrong, name); far <= wrong.size() / 3)
      names.emplace_back(far, name);
  }
  std::stable_sort(names.begin(), names.end(),
                   [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string result;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    result.append(i ? "', '" : "; nearest: '").append(names[i].second);
  return result.empty() ? result : result + "'";
}

Status force(const archive::Archive &archive, const NameList &list, Policy *policy) {
  std::vector<std::string_view> names;
  if (!split(list.names, &names)) return refuse(list, "", "allowed: names of kernels, with commas");
  for (const std::string_view name : names) {
    const auto entries = archive.entries();
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const archive::Entry &entry) {
      return archive.string(entry.name) == name;
    });
    if (at == entries.end()) {
      return refuse(list, name,
                    "allowed: names of kernels of '" + archive.path() +
                        "' (flydsl-aot archive list), with commas" + nearest(archive, name));
    }
    policy->forced.push_back(static_cast<uint32_t>(at - entries.begin()));
  }
  std::sort(policy->forced.begin(), policy->forced.end());
  return {};
}

Status allow(const archive::Archive &archive, const NameList &list, Policy *policy) {
  std::vector<std::string_view> names;
  split(list.names, &names);  // an empty name is not known, either
  const auto is_known = [](std::string_view name) {
    return std::find(std::begin(kBackends), std::end(kBackends), name) != std::end(kBackends);
  };
  const auto unknown = std::find_if_not(names.begin(), names.end(), is_known);
  if (unknown != names.end()) {
    std::string known;
    for (const std::string_view name : kBackends)
      known.append(known.empty() ? "" : ", ").append(name);
    return refuse(list, *unknown, "allowed: some of " + known + ", with commas");
  }
  for (const archive::Entry &entry : archive.entries()) {
    const auto allowed = std::find(names.begin(), names.end(), archive.string(entry.backend));
    policy->barred.push_back(allowed == names.end());
  }
  return {};
}

}  // namespace

bool Policy::forces(uint32_t entry) const {
  return std::binary_search(forced.begin(), forced.end(), entry);
}

Status make_policy(const archive::Archive &archive, const NameList &force_kernel,
                   const NameList &backends, Policy *policy) {
  const auto given = [](const NameList &list) { return list.names && list.names[0]; };
  if (given(backends)) FLYDSL_RETURN_IF_ERROR(allow(archive, backends, policy));
  return given(force_kernel) ? force(archive, force_kernel, policy) : Status();
}

}  // namespace flydsl::select
