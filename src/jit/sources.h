// What codegen put into the library to be compiled at run time (codegen/generate/recipes.py and sources.py).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/archive/reader.h"
#include "src/jit/key.h"
#include "src/status/status.h"

namespace flydsl::jit {

// The frame that this library carries.
std::span<const unsigned char> embedded_sources();

class Sources {
 public:
  // `frame`: of zstd, with the table of instances and all files. INTERNAL for one that the library's own build cannot have made.
  static Status open(std::span<const unsigned char> frame, std::unique_ptr<Sources> *sources);

  // The instances of an architecture, best first of each key, for the archive's index. Views live as long as this object.
  std::vector<archive::Addition> instances(const std::string &arch) const;
  // The source of an instance and all headers it includes, itself first, the others by name; empty for a name that is unknown.
  std::vector<Source> of(std::string_view instance, std::string_view arch) const;

 private:
  struct Recipe {
    std::string_view archs, source;
    archive::Addition addition;
  };
  Status split();
  Status read_table(std::string_view table);

  std::string text_;
  std::map<std::string_view, std::string_view> files_;
  std::vector<Recipe> recipes_;
};

}  // namespace flydsl::jit
