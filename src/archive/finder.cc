#include "src/archive/finder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "src/log/log.h"
#include "src/paths/paths.h"

namespace flydsl::archive {
namespace {

constexpr std::string_view kPrefix = "flydsl_aot.";
constexpr std::string_view kSuffix = ".fda";

struct Place {
  std::string path;
  const char *origin;
};

std::vector<Place> named_places(const char *option_path) {
  if (option_path) return {{option_path, "option archive_path"}};
  std::vector<Place> result;
  if (const char *value = std::getenv("FLYDSL_AOT_ARCHIVE_PATH")) {
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t colon = rest.find(':');
      if (const std::string_view part = rest.substr(0, colon); !part.empty()) {
        result.push_back({std::string(part), "FLYDSL_AOT_ARCHIVE_PATH"});
      }
      rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    }
  }
  return result;
}

std::vector<Place> places(const char *option_path) {
  std::vector<Place> result = named_places(option_path);
  // Decisive, like the variables that name a device library: a misspelt path must not be served from elsewhere.
  if (!result.empty()) return result;
  for (const std::string &directory : own_directories())
    result.push_back({directory, "beside this library"});
  for (const std::string &directory : own_directories()) {
    result.push_back({join_path(directory, "../share/flydsl_aot"), "installed data"});
  }
  return result;
}

bool is_directory(const std::string &path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Architectures with an archive in a directory, sorted: what a refused user can choose from.
std::vector<std::string> archs_in(const std::string &directory) {
  std::vector<std::string> result;
  DIR *stream = opendir(directory.c_str());
  if (!stream) return result;
  while (const dirent *item = readdir(stream)) {
    const std::string_view name = item->d_name;
    if (name.size() > kPrefix.size() + kSuffix.size() &&
        name.substr(0, kPrefix.size()) == kPrefix &&
        name.substr(name.size() - kSuffix.size()) == kSuffix) {
      result.emplace_back(
          name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    }
  }
  closedir(stream);
  std::sort(result.begin(), result.end());
  return result;
}

// What looking at one place gave. `final` means: this is the answer, look no further.
struct Look {
  Status status;
  bool final = false;
  bool other_arch = false;
};

Look look_at(const std::string &path, const std::string &arch, uint64_t abi_id,
             std::unique_ptr<Archive> *archive) {
  const bool directory = is_directory(path);
  const std::string file =
      directory ? join_path(path, std::string(kPrefix) + arch + std::string(kSuffix)) : path;
  std::unique_ptr<Archive> opened;
  Look look;
  look.status = Archive::open(file, abi_id, &opened);
  if (look.status.ok() && arch != opened->arch()) {
    look.other_arch = true;
    look.status =
        error(FLYDSL_AOT_UNSUPPORTED_ARCH, "'%s': an archive for %s", file.c_str(), opened->arch());
    return look;
  }
  if (look.status.ok()) *archive = std::move(opened);
  look.final = look.status.code() != FLYDSL_AOT_ARCHIVE_NOT_FOUND;
  if (!look.final && directory) {
    std::string others;
    for (const std::string &name : archs_in(path)) others += (others.empty() ? "" : ", ") + name;
    if (!others.empty()) {
      look.other_arch = true;
      look.status = error(FLYDSL_AOT_UNSUPPORTED_ARCH, "%s (there are archives for: %s)",
                          look.status.message().c_str(), others.c_str());
    }
  }
  return look;
}

}  // namespace

Status find_archive(const std::string &arch, const char *option_path, uint64_t abi_id,
                    std::unique_ptr<Archive> *archive) {
  bool other_arch = false;
  std::string tried;
  for (const Place &place : places(option_path)) {
    const Look look = look_at(place.path, arch, abi_id, archive);
    if (look.status.ok()) {
      FLYDSL_LOG(Info, "archive %s", (*archive)->path().c_str());
      return {};
    }
    tried += (tried.empty() ? "" : "; ") + look.status.message() + " [" + place.origin + "]";
    if (look.final) return {look.status.code(), tried};
    other_arch |= look.other_arch;
  }
  return error(other_arch ? FLYDSL_AOT_UNSUPPORTED_ARCH : FLYDSL_AOT_ARCHIVE_NOT_FOUND,
               "no kernel archive for %s: %s", arch.c_str(), tried.c_str());
}

bool names_absent_place(const char *option_path) {
  const std::vector<Place> named = named_places(option_path);
  return std::any_of(named.begin(), named.end(), [](const Place &place) {
    struct stat info {};
    return stat(place.path.c_str(), &info) != 0;
  });
}

}  // namespace flydsl::archive
