// Compresses a file into one zstd frame, for what is embedded in the library.
//
// usage: flydsl-aot-compress IN OUT
#include <zstd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: flydsl-aot-compress IN OUT\n");
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  const size_t bytes =
      ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), ZSTD_maxCLevel());
  if (in.bad() || text.empty() || ZSTD_isError(bytes)) {
    std::fprintf(stderr, "flydsl-aot-compress: '%s' cannot be read or compressed\n", argv[1]);
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary | std::ios::trunc);
  out.write(frame.data(), static_cast<std::streamsize>(bytes));
  out.close();
  if (out.good()) return 0;
  std::fprintf(stderr, "flydsl-aot-compress: '%s' cannot be written\n", argv[2]);
  std::remove(argv[2]);
  return 1;
}
