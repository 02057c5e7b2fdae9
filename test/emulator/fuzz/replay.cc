// Runs the fuzz target on files and on every file of folders: the corpus, without libFuzzer.
//
// usage: ..._replay [--changes N] PATH...    N: versions of each file with some bytes changed, too, the same in every run
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

namespace {

// Of exactly that size, so that a sanitizer sees reads past the end.
void run(const std::vector<char> &content) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[content.size()]);
  std::copy(content.begin(), content.end(), copy.get());
  LLVMFuzzerTestOneInput(copy.get(), content.size());
}

size_t replay(const std::filesystem::path &path, unsigned changes) {
  if (std::filesystem::is_directory(path)) {
    size_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator(path)) count += replay(entry, changes);
    return count;
  }
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  std::printf("%s: %zu bytes\n", path.c_str(), content.size());
  std::fflush(stdout);
  run(content);
  std::mt19937 random(1);
  for (unsigned i = 0; i < changes && !content.empty(); ++i) {
    std::vector<char> changed = content;
    if (i % 8 == 0) changed.resize(random() % changed.size() + 1);
    for (unsigned j = 0; j <= i % 4; ++j) changed[random() % changed.size()] = static_cast<char>(random() >> (i % 3 * 8));
    run(changed);
  }
  return 1 + changes;
}

}  // namespace

int main(int count, char **arguments) {
  size_t inputs = 0;
  unsigned changes = 0;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) == "--changes" && i + 1 < count)
      changes = static_cast<unsigned>(std::stoul(arguments[++i]));
    else
      inputs += replay(arguments[i], changes);
  }
  std::printf("%zu inputs\n", inputs);
  return inputs == 0;  // an empty corpus is a mistake
}
