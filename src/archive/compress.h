// The code objects of an archive as zstd frames, with a shared dictionary where one helps.
#pragma once

#include <cstddef>
#include <vector>

#include "src/status/status.h"

namespace flydsl::archive {

struct Frames {
  std::vector<unsigned char> dictionary;           // empty: none
  std::vector<std::vector<unsigned char>> frames;  // one per distinct image
  std::vector<size_t> frame_of_image;              // index into `frames`
};

// Compresses with and without a trained dictionary and keeps the smaller total. Equal images share
// a frame.
Status compress_images(const std::vector<const std::vector<unsigned char> *> &images,
                       Frames *frames);

}  // namespace flydsl::archive
