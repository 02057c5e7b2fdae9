#include "emulator/loader/offload_bundle.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace flydsl::emu {
namespace {

constexpr char kMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr size_t kMagicBytes = sizeof kMagic - 1;
constexpr uint64_t kMostEntries = 1024;

struct TableEntry {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string target;
};

bool read_u64(const void *data, size_t bytes, uint64_t *at, uint64_t *value) {
  if (*at > bytes || bytes - *at < sizeof *value) return false;
  std::memcpy(value, static_cast<const char *>(data) + *at, sizeof *value);
  *at += sizeof *value;
  return true;
}

std::optional<std::vector<TableEntry>> read_table(const void *data, size_t bytes) {
  uint64_t at = kMagicBytes, count = 0;
  if (!read_u64(data, bytes, &at, &count) || count > kMostEntries) return std::nullopt;
  std::vector<TableEntry> entries(count);
  for (TableEntry &entry : entries) {
    uint64_t name_bytes = 0;
    if (!read_u64(data, bytes, &at, &entry.offset) || !read_u64(data, bytes, &at, &entry.bytes) ||
        !read_u64(data, bytes, &at, &name_bytes) || name_bytes > bytes - at)
      return std::nullopt;
    entry.target.assign(static_cast<const char *>(data) + at, name_bytes);
    at += name_bytes;
    if (entry.offset > bytes || entry.bytes > bytes - entry.offset) return std::nullopt;
  }
  return entries;
}

int stated_features(const TargetId &id) {
  return (id.sramecc != TargetId::Feature::kAny) + (id.xnack != TargetId::Feature::kAny);
}

}  // namespace

bool looks_like_offload_bundle(const void *data, size_t bytes) {
  return bytes >= kMagicBytes && std::memcmp(data, kMagic, kMagicBytes) == 0;
}

size_t offload_bundle_bytes(const void *data, size_t readable) {
  const auto entries = read_table(data, readable);
  if (!entries) return 0;
  uint64_t end = kMagicBytes;
  for (const TableEntry &entry : *entries) end = std::max(end, entry.offset + entry.bytes);
  return end;
}

bool pick_bundle_entry(const void *data, size_t bytes, const TargetId &device, BundleEntry *entry,
                       bool *damaged, std::string *error) {
  const auto entries = read_table(data, bytes);
  *damaged = !entries;
  if (!entries) {
    *error = "damaged offload bundle";
    return false;
  }
  int best = -1;
  std::string targets;
  for (const TableEntry &candidate : *entries) {
    targets += (targets.empty() ? "" : ", ") + candidate.target.substr(0, 80);
    TargetId code;
    std::string reason;
    if (candidate.target.rfind("host", 0) == 0 || candidate.bytes == 0 ||
        !parse_target_id(candidate.target, &code, &reason) ||
        !device_accepts(device, code, &reason))
      continue;
    if (stated_features(code) > best) {
      best = stated_features(code);
      *entry = {static_cast<const char *>(data) + candidate.offset,
                static_cast<size_t>(candidate.bytes)};
    }
  }
  if (best < 0) {
    *error =
        "the offload bundle has no entry for " + to_string(device) + " (it has: " + targets + ")";
    return false;
  }
  return true;
}

}  // namespace flydsl::emu
