// The checks of attention_forward, by idea; check() in attention_forward_check.cc makes all of them.
//
// attention_backward makes those that take Outputs too, of the forward problem whose gradients it computes.
#pragma once

#include <span>

#include "v2src/attention_forward.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward {

// What the call writes.
using Outputs = std::span<const Operand>;

// No output shares memory with an input.
Status check_input_apart(Outputs outputs, const Operand &input);

// Sizes that can be numbered.
Status check_limits(const Sizes &sizes, bool nothing_to_do);

// Element types, and the factors of 8-bit ones (attention_forward_check_formats.cc).
Status check_formats(const Params &params);
Status check_descale(const Params &params, const Sizes &sizes, Outputs outputs, bool query);

// Sequences of different lengths (attention_forward_check_lengths.cc): dtypes and shapes, once those
// of q and k are known to be right; then memory.
Status check_lengths(const Params &params);
Status check_lengths_memory(const Params &params, Outputs outputs, bool query);

// Paged keys and values (attention_forward_check_paging.cc), before the lengths are looked at.
Status check_paging(const Params &params);
Status check_paging_memory(const Params &params, Outputs outputs, bool query);

// Softcap, bias, ALiBi, sinks, boolean mask (attention_forward_check_scores.cc).
Status check_scores(const Params &params, const Sizes &sizes, Outputs outputs, bool query);

// Dropout (attention_forward_check_dropout.cc).
Status check_dropout(const Params &params, const Sizes &sizes, Outputs outputs, bool query);

}  // namespace flydsl::attention_forward
