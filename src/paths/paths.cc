#include "src/paths/paths.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

namespace flydsl {
namespace {

std::string directory_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::vector<std::string> own_directories() {
  std::vector<std::string> result;
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(&own_directories), &info) || !info.dli_fname)
    return result;
  result.push_back(directory_of(info.dli_fname));
  char resolved[PATH_MAX];
  if (realpath(info.dli_fname, resolved)) {
    std::string real_directory = directory_of(resolved);
    if (real_directory != result.front()) result.push_back(std::move(real_directory));
  }
  return result;
}

std::string join_path(const std::string &directory, const std::string &name) {
  if (directory.empty()) return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

}  // namespace flydsl
