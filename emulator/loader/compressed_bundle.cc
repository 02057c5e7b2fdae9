#include "emulator/loader/compressed_bundle.h"

#include <zstd.h>

#include <cstring>
#include <new>
#include <optional>

#include "llvm/Support/Compression.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MD5.h"

namespace flydsl::emu {
namespace {

constexpr char kMagic[] = "CCOB";
constexpr size_t kMagicBytes = sizeof kMagic - 1;
constexpr uint64_t kLargestBundleBytes = uint64_t{1} << 30;  // as the loader's limit on images
enum Method : uint16_t { kZlib = 0, kZstd = 1 };             // llvm::compression::Format

struct Header {
  uint16_t version = 0, method = 0;
  uint64_t file_bytes = 0;  // with the header; version 1: all there are
  uint64_t plain_bytes = 0;
  uint64_t hash = 0;  // low half of the plain bundle's MD5
  size_t header_bytes = 0;
};

std::optional<Header> read_header(const void *data, size_t bytes, std::string *error) {
  const auto refuse = [&](const std::string &why) {
    *error = "compressed offload bundle: " + why;
    return std::nullopt;
  };
  Header header;
  size_t at = kMagicBytes;
  bool complete = true;
  const auto take = [&](size_t size) {
    uint64_t value = 0;
    complete = complete && bytes - at >= size;
    if (!complete) return value;
    std::memcpy(&value, static_cast<const uint8_t *>(data) + at, size);
    at += size;
    return value;
  };
  header.version = uint16_t(take(2));
  header.method = uint16_t(take(2));
  if (complete && (header.version < 1 || header.version > 3))
    return refuse("version " + std::to_string(header.version) + ", versions 1 to 3 are supported");
  const size_t size_bytes = header.version == 3 ? 8 : 4;
  header.file_bytes = header.version == 1 ? bytes : take(size_bytes);
  header.plain_bytes = take(size_bytes);
  header.hash = take(8);
  header.header_bytes = at;
  if (!complete) return refuse("the data ends inside its header");
  if (header.method != kZlib && header.method != kZstd)
    return refuse("compression method " + std::to_string(header.method) +
                  ", 0 (zlib) and 1 (zstd) are supported");
  if (header.file_bytes < at || header.file_bytes > bytes)
    return refuse("it takes " + std::to_string(header.file_bytes) +
                  " bytes by its header, there are " + std::to_string(bytes) + " (truncated?)");
  return header;
}

}  // namespace

bool looks_like_compressed_bundle(const void *data, size_t bytes) {
  return bytes >= kMagicBytes && std::memcmp(data, kMagic, kMagicBytes) == 0;
}

size_t compressed_bundle_bytes(const void *data, size_t readable) {
  std::string error;
  const auto header = read_header(data, readable, &error);
  return header ? header->file_bytes : 0;
}

InflatedBundle inflate_bundle(const void *data, size_t bytes, std::string *error) {
  const auto refuse = [&](const std::string &why) {
    *error = "compressed offload bundle: " + why;
    return InflatedBundle();
  };
  const auto header = read_header(data, bytes, error);
  if (!header) return {};
  if (header->plain_bytes > kLargestBundleBytes)
    return refuse("its contents take " + std::to_string(header->plain_bytes) +
                  " bytes by its header, the limit is 1 GiB");
  const uint8_t *stream = static_cast<const uint8_t *>(data) + header->header_bytes;
  size_t stream_bytes = header->file_bytes - header->header_bytes;
  const bool zstd = header->method == kZstd;
  if (zstd) {
    stream_bytes = ZSTD_findFrameCompressedSize(stream, stream_bytes);
    if (ZSTD_isError(stream_bytes)) return refuse(ZSTD_getErrorName(stream_bytes));
  }
  // Not initialised: what a damaged header claims costs nothing before there are bytes for it.
  InflatedBundle plain;
  plain.data.reset(new (std::nothrow) uint8_t[header->plain_bytes]);
  if (!plain.data)
    return refuse("out of memory for " + std::to_string(header->plain_bytes) + " bytes");
  plain.bytes = header->plain_bytes;
  const llvm::ArrayRef<uint8_t> input(stream, stream_bytes);
  llvm::Error failure =
      zstd ? llvm::compression::zstd::decompress(input, plain.data.get(), plain.bytes)
           : llvm::compression::zlib::decompress(input, plain.data.get(), plain.bytes);
  if (failure) return refuse(llvm::toString(std::move(failure)));
  if (plain.bytes != header->plain_bytes)
    return refuse("it holds " + std::to_string(plain.bytes) + " bytes, its header says " +
                  std::to_string(header->plain_bytes));
  if (llvm::MD5::hash({plain.data.get(), plain.bytes}).low() != header->hash)
    return refuse("its contents do not have the hash that its header states");
  return plain;
}

}  // namespace flydsl::emu
