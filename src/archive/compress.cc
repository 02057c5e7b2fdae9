#include "src/archive/compress.h"

#include <zdict.h>
#include <zstd.h>

#include <map>
#include <memory>
#include <string_view>

#include "src/archive/format.h"

namespace flydsl::archive {
namespace {

constexpr int kLevel =
    22;  // compressed once, at build time; decompression speed does not depend on it
constexpr size_t kDictionaryBytes = 112640;  // zstd's own default for training

using Bytes = std::vector<unsigned char>;

struct CompressorDeleter {
  void operator()(ZSTD_CCtx *context) const { ZSTD_freeCCtx(context); }
};

Status compress_one(ZSTD_CCtx *context, const Bytes &image, Bytes *frame) {
  frame->resize(ZSTD_compressBound(image.size()));
  const size_t bytes =
      ZSTD_compress2(context, frame->data(), frame->size(), image.data(), image.size());
  if (ZSTD_isError(bytes)) return error(FLYDSL_AOT_INTERNAL, "zstd: %s", ZSTD_getErrorName(bytes));
  frame->resize(bytes);
  return {};
}

// Total bytes of the frames and the dictionary, or an error.
Status compress_all(const std::vector<const Bytes *> &images, const Bytes &dictionary,
                    std::vector<Bytes> *frames, size_t *total) {
  std::unique_ptr<ZSTD_CCtx, CompressorDeleter> context(ZSTD_createCCtx());
  if (!context) return error(FLYDSL_AOT_OUT_OF_HOST_MEMORY, "no memory for a zstd context");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  if (!dictionary.empty())
    ZSTD_CCtx_loadDictionary(context.get(), dictionary.data(), dictionary.size());
  *total = dictionary.size();
  for (const Bytes *image : images) {
    Bytes frame;
    FLYDSL_RETURN_IF_ERROR(compress_one(context.get(), *image, &frame));
    *total += padded8(frame.size());
    frames->push_back(std::move(frame));
  }
  return {};
}

// Empty when zstd finds too little to train on.
Bytes train(const std::vector<const Bytes *> &images) {
  Bytes samples;
  std::vector<size_t> sizes;
  for (const Bytes *image : images) {
    samples.insert(samples.end(), image->begin(), image->end());
    sizes.push_back(image->size());
  }
  Bytes dictionary(kDictionaryBytes);
  const size_t bytes = ZDICT_trainFromBuffer(dictionary.data(), dictionary.size(), samples.data(),
                                             sizes.data(), static_cast<unsigned>(sizes.size()));
  if (ZDICT_isError(bytes)) return {};
  dictionary.resize(bytes);
  return dictionary;
}

}  // namespace

Status compress_images(const std::vector<const Bytes *> &images, Frames *result) {
  std::map<std::string_view, size_t> seen;
  std::vector<const Bytes *> distinct;
  for (const Bytes *image : images) {
    const auto [at, is_new] = seen.try_emplace(
        std::string_view(reinterpret_cast<const char *>(image->data()), image->size()),
        distinct.size());
    if (is_new) distinct.push_back(image);
    result->frame_of_image.push_back(at->second);
  }
  size_t plain_total = 0;
  FLYDSL_RETURN_IF_ERROR(compress_all(distinct, {}, &result->frames, &plain_total));
  Bytes dictionary = train(distinct);
  if (dictionary.empty()) return {};
  std::vector<Bytes> with_dictionary;
  size_t total = 0;
  FLYDSL_RETURN_IF_ERROR(compress_all(distinct, dictionary, &with_dictionary, &total));
  if (total < plain_total) {
    result->dictionary = std::move(dictionary);
    result->frames = std::move(with_dictionary);
  }
  return {};
}

}  // namespace flydsl::archive
