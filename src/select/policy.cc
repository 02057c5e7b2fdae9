#include "src/select/policy.h"

#include <algorithm>
#include <cstring>
#include <string>

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

Status refuse(const NameList &list, const std::string &allowed) {
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "%s is '%.160s'; %s", list.source, list.names,
               allowed.c_str());
}

Status force(const archive::Archive &archive, const NameList &list, Policy *policy) {
  std::vector<std::string_view> names;
  if (!split(list.names, &names)) return refuse(list, "allowed: names of kernels, with commas");
  for (const std::string_view name : names) {
    const auto entries = archive.entries();
    const auto at =
        std::find_if(entries.begin(), entries.end(), [&](const archive::Entry &entry) {
          return archive.string(entry.name) == name;
        });
    if (at == entries.end()) {
      return refuse(list, "allowed: names of kernels of '" + archive.path() +
                              "' (flydsl-aot archive list), with commas");
    }
    policy->forced.push_back(static_cast<uint32_t>(at - entries.begin()));
  }
  std::sort(policy->forced.begin(), policy->forced.end());
  return {};
}

Status allow(const archive::Archive &archive, const NameList &list, Policy *policy) {
  std::vector<std::string_view> names;
  const bool complete = split(list.names, &names);
  const auto is_known = [](std::string_view name) {
    return std::find(std::begin(kBackends), std::end(kBackends), name) != std::end(kBackends);
  };
  if (!complete || !std::all_of(names.begin(), names.end(), is_known)) {
    std::string known;
    for (const std::string_view name : kBackends)
      known.append(known.empty() ? "" : ", ").append(name);
    return refuse(list, "allowed: some of " + known + ", with commas");
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
