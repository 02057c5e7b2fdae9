#include "src/paths/paths.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace flydsl {
namespace {

std::string directory_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where the library was loaded from and where that really is. Taken at load time: the loader may have been given a
// relative path, which means nothing after a chdir().
char loaded_from[PATH_MAX];
char really_at[PATH_MAX];

__attribute__((constructor)) void remember_own_path() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(&remember_own_path), &info) || !info.dli_fname) return;
  if (!realpath(info.dli_fname, really_at)) really_at[0] = '\0';
  char working_directory[PATH_MAX];
  const bool relative = info.dli_fname[0] != '/';
  if (relative && !getcwd(working_directory, sizeof working_directory)) return;
  const int length = relative ? snprintf(loaded_from, sizeof loaded_from, "%s/%s",
                                         working_directory, info.dli_fname)
                              : snprintf(loaded_from, sizeof loaded_from, "%s", info.dli_fname);
  if (length < 0 || static_cast<size_t>(length) >= sizeof loaded_from) loaded_from[0] = '\0';
}

}  // namespace

std::vector<std::string> own_directories() {
  std::vector<std::string> result;
  for (const char *path : {loaded_from, really_at}) {
    if (!*path) continue;
    std::string directory = directory_of(path);
    if (result.empty() || directory != result.front()) result.push_back(std::move(directory));
  }
  return result;
}

std::string join_path(const std::string &directory, const std::string &name) {
  if (directory.empty()) return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

}  // namespace flydsl
