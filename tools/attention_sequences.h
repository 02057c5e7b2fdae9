// Sequences of different lengths, as the tools are told of them; and numbers that a call takes from device memory.
#pragma once

#include <vector>

#include "tools/attention_arguments.h"

namespace flydsl::tools {

// Sequences of equal lengths.
struct Sequences {
  int64_t count, rows, keys;
};

// What is said of the rows, or of the keys, of a problem's sequences.
struct Lengths {
  std::vector<int64_t> starts;  // cu_seqlens; empty: dense
  std::vector<int64_t> used;    // seqused; empty: all
  int64_t longest = 0;

  // How many sequences it tells apart; 0 if they are equal.
  size_t told() const;
  int64_t of(size_t sequence) const;
};

int64_t longest_of(const std::vector<int64_t> &starts);

std::vector<Sequences> sequences_of(int64_t batches, const Lengths &rows, const Lengths &keys);

// Pairs of query and key that mask and lengths leave, of one head.
double visible_pairs(const flydsl_aot_mask &mask, const std::vector<Sequences> &sequences);

// A number in device memory that the parameters point to. Queries look at nothing but whether there is one:
// `without_data` then stands for its address.
const uint64_t *number_at(const flydsl_aot_tensor &tensor, uint64_t without_data);

}  // namespace flydsl::tools
