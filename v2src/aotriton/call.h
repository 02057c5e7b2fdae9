// A call as its caller's parameters say, whichever version they have. Fields that may be garbage are copied as they are: what
// counts is decided where they are read.
#pragma once

#include <cstdint>

#include "aotriton/util.h"

namespace flydsl::aotriton {

using ::aotriton::LazyTensor;
using ::aotriton::TensorView;

// How the sequences of one side (of q, or of k and v) lie; the numbers are those of VarlenMode.
struct Side {
  enum Length : uint8_t { kMax, kCumulative, kIndividual };
  enum Position : uint8_t { kImplied, kReuse, kArray };

  bool stacked = false;  // (1, H, total, D)
  uint8_t length = kMax;
  uint8_t position = kImplied;
  TensorView<1> lengths;    // of kCumulative, kIndividual
  TensorView<1> positions;  // of kArray
  int32_t longest = 0;      // Max_seqlen: not to be read where nothing varies

  bool varies() const { return stacked || length != kMax || position != kImplied; }
};

// What attn_fwd and attn_bwd have in common.
struct Call {
  const char *function;
  TensorView<4> q, k, v, out, bias;
  float scale;
  TensorView<2> lse;
  Side side_q, side_k;
  uint32_t lse_layout = 0;  // VarlenLseLayout
  bool bad_bits = false;    // reserved ones of varlen_bits are set
  float dropout_p;
  TensorView<0> seed, offset;
  uint64_t offset_beyond;  // added to *offset
  int8_t causal_type;
  int32_t window_left, window_right;
};

struct ForwardCall : Call {
  TensorView<2> alibi;
  TensorView<0> seed_out, offset_out;
  TensorView<4> encoded_softmax;
};

struct BackwardCall : Call {
  TensorView<4> dout, dq, dk, dv, dbias;
  LazyTensor<2> *row_sums;        // D
  LazyTensor<4> *dq_accumulator;  // DQ_ACC
};

// Of parameters laid out as these versions are (read_versions_3_6.cc, read_versions_4_7.cc).
ForwardCall read_forward_3(const void *params);
ForwardCall read_forward_4(const void *params);
BackwardCall read_backward_6(const void *params);
BackwardCall read_backward_7(const void *params);

}  // namespace flydsl::aotriton
