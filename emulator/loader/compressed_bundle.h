// Offload bundles that clang compressed (--offload-compress): a header, then a plain bundle
// (offload_bundle.h) as a zlib or zstd stream. Format: Clang documentation, "Clang Offload Bundler", section
// "Compression and Decompression"; versions 1 to 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace flydsl::emu {

bool looks_like_compressed_bundle(const void *data, size_t bytes);

// How many of `readable` bytes the bundle takes at most; 0 when its header is damaged. (Version 1 does
// not state its length: all of them.)
size_t compressed_bundle_bytes(const void *data, size_t readable);

struct InflatedBundle {
  std::unique_ptr<uint8_t[]> data;  // null: damaged
  size_t bytes = 0;
};
// `error` says what is wrong. What follows the bundle is ignored.
InflatedBundle inflate_bundle(const void *data, size_t bytes, std::string *error);

}  // namespace flydsl::emu
