// Sequences of different lengths, between the tests' dense (B, H, S, D) arrays and the packed
// (H, total, D) tensors that the library takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace flydsl::verify {

// How sequences of different lengths reach the library.
enum class Lengths {
  kDense,       // they do not: all have the full length
  kUsed,        // dense tensors, seqused
  kPacked,      // packed tensors, cu_seqlens
  kPackedUsed,  // packed tensors with unused rows after each sequence, cu_seqlens and seqused
  kPaged        // keys in a pool of blocks, block_table and seqused
};

// Rows of a packed tensor.
struct Packing {
  std::vector<int32_t> starts;   // cu_seqlens
  std::vector<int32_t> lengths;  // seqused
  int64_t total = 0;
  int64_t longest = 0;  // room of a sequence
};
// A few unused rows also before the first sequence and, with `gaps`, between all.
Packing packing_of(const std::vector<int64_t> &lengths, bool gaps);

// Dense (B, heads, positions, channels) to (heads, total, channels); unused rows hold `filler`.
template <typename Element>
std::vector<Element> pack(const Packing &packing, const std::vector<Element> &dense, int64_t heads,
                          int64_t positions, int64_t channels, Element filler) {
  std::vector<Element> packed(static_cast<size_t>(heads * packing.total * channels), filler);
  for (size_t b = 0; b < packing.lengths.size(); ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const auto from =
          dense.begin() + (static_cast<int64_t>(b) * heads + h) * positions * channels;
      std::copy_n(from, packing.lengths[b] * channels,
                  packed.begin() + (h * packing.total + packing.starts[b]) * channels);
    }
  }
  return packed;
}

// Keys in a pool of blocks.
struct Paging {
  int64_t block_size = 0;
  int64_t blocks = 0;                // of the pool, some not in use
  int64_t blocks_of_sequence = 0;    // entries of a row of the table
  std::vector<int32_t> block_table;  // (B, blocks_of_sequence); entries not in use are no blocks
};
// Blocks in a random order, which `seed` names.
Paging paging_of(const std::vector<int64_t> &lengths, int64_t positions, int64_t block_size,
                 uint64_t seed);

// Dense (B, heads, positions, channels) to (blocks, heads, block size, channels); rows that are not in
// use hold `filler`.
template <typename Element>
std::vector<Element> page(const Paging &paging, const std::vector<int64_t> &lengths,
                          const std::vector<Element> &dense, int64_t heads, int64_t positions,
                          int64_t channels, Element filler) {
  std::vector<Element> pool(
      static_cast<size_t>(paging.blocks * heads * paging.block_size * channels), filler);
  for (size_t b = 0; b < lengths.size(); ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t j = 0; j < lengths[b]; ++j) {
        const int64_t block =
            paging.block_table[b * static_cast<size_t>(paging.blocks_of_sequence) +
                               static_cast<size_t>(j / paging.block_size)];
        const auto from =
            dense.begin() + ((static_cast<int64_t>(b) * heads + h) * positions + j) * channels;
        std::copy_n(
            from, channels,
            pool.begin() +
                ((block * heads + h) * paging.block_size + j % paging.block_size) * channels);
      }
    }
  }
  return pool;
}

// And back from packed; rows past a sequence's length hold `filler`.
template <typename Element>
std::vector<Element> unpack(const Packing &packing, const std::vector<Element> &packed,
                            int64_t heads, int64_t positions, int64_t channels, Element filler) {
  const auto batches = static_cast<int64_t>(packing.lengths.size());
  std::vector<Element> dense(static_cast<size_t>(batches * heads * positions * channels), filler);
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const auto length = packing.lengths[static_cast<size_t>(b)];
      const auto from =
          packed.begin() + (h * packing.total + packing.starts[static_cast<size_t>(b)]) * channels;
      std::copy_n(from, length * channels, dense.begin() + (b * heads + h) * positions * channels);
    }
  }
  return dense;
}

}  // namespace flydsl::verify
