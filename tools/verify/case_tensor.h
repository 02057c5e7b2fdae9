// What a case's line says of one tensor: what it holds and where it lies.
#pragma once

#include <cstdint>
#include <string>

#include "tools/verify/attention_forward_case.h"
#include "tools/verify/case_line.h"

namespace flydsl::verify {

// What q, k, v and their like hold.
struct Values {
  enum Kind {
    kNormal,    // standard normal
    kInteger,   // random integers from -2 to 2
    kConstant,  // `factor`
    kFirst,     // `factor` in channel 0, else 0
    kPosition,  // the coordinate modulo `modulus` (0: without) over `divisor`
    kChannel,
    kBatch,
    kHead,
    kBatchPlusHead,
    kKeys  // of v: it is a view of k, its first channels
  };
  Kind kind = kNormal;
  double factor = 1;  // of kNormal, kConstant and kFirst
  int64_t modulus = 0;
  double divisor = 1;
};

// Where a tensor lies.
struct PlacementRule {
  enum Kind { kTight, kGuarded, kBshd, kRandom, kRandom16, kSlack, kOffset, kPitch };
  Kind kind = kTight;    // outputs: kGuarded, the same between 64 elements that must not change
  int64_t elements = 0;  // of kOffset, before the first; of kPitch, after each row
  std::string zero;      // letters of axes with stride 0
};

// "normal", "normal*3", "int", "0.5", "first:7", "position%128/128", ...
Values parse_values(CaseLine &line, const std::string &key);

// The keys TENSOR_place, "tight", "bshd", "random", "random16", "slack", "offset:3", "pitch:1", and TENSOR_zero, letters
// of `axes`; outputs have no axes with stride 0: "".
PlacementRule parse_placement(CaseLine &line, const std::string &tensor, const std::string &axes);

// Random numbers of one use of a case, `stream`, at one place of a tensor: each is drawn from its own place, so that one
// that is the same along an axis with stride 0 needs no order of drawing.
Random random_at(uint64_t seed, uint64_t stream, int64_t place = 0);

// Of (batch, head, position, channel), the same along axes of `zero`.
AttentionCase::Fill filler(uint64_t seed, uint64_t stream, const Values &values,
                           const std::string &zero, int64_t heads, int64_t positions,
                           int64_t channels);

// `free_axes`: the first ones, that kRandom may order as it likes. `axes`: the letters of `zero`.
Placement place(const PlacementRule &rule, Random &random, int rank, int free_axes,
                const std::string &axes, int64_t element_bytes);

}  // namespace flydsl::verify
