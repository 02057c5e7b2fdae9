// Runs the fuzz target on files and on every file of folders: the corpus, without libFuzzer.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

namespace {

size_t replay(const std::filesystem::path &path) {
  if (std::filesystem::is_directory(path)) {
    size_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator(path)) count += replay(entry);
    return count;
  }
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  std::printf("%s: %zu bytes\n", path.c_str(), content.size());
  std::fflush(stdout);
  // Of exactly that size, so that a sanitizer sees reads past the end.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[content.size()]);
  std::copy(content.begin(), content.end(), copy.get());
  LLVMFuzzerTestOneInput(copy.get(), content.size());
  return 1;
}

}  // namespace

int main(int count, char **arguments) {
  size_t files = 0;
  for (int i = 1; i < count; ++i) files += replay(arguments[i]);
  std::printf("%zu inputs\n", files);
  return files == 0;  // an empty corpus is a mistake
}
