// A look at a call's tensors that sees whether all is as nearly every call has it, and not what is wrong where it is not: one pass over
// each tensor, hardly a branch. A call in which all is plain passes the checks (tensor_check.h) and needs none of them; of any other they
// find out what there is to say.
#pragma once

#include <cstdint>

#include "flydsl_aot/types.h"
#include "v2src/call_recording.h"
#include "v2src/types.h"

namespace flydsl {

class PlainLook {
 public:
  // Nothing is plain to a call that is being recorded: the checks tell the recording what they compare.
  PlainLook() : wrong_(CallRecording::any()) {}

  bool all_plain() const { return wrong_ == 0; }
  void expect(bool holds) { wrong_ |= !holds; }

  // From the first to past the last byte; both 0 for nothing.
  struct Memory {
    uint64_t begin = 0, end = 0;
  };
  enum class Is { kInput, kOutput };  // an output must not overlap itself
  enum class Last { kContiguous, kAny };

  // A tensor of this rank with elements: sizes and strides are below 2^28, none negative, and the address suits every element type.
  template <int rank, Is is, Last last = Last::kContiguous>
  Memory tensor(const flydsl_aot_tensor &tensor) {
    uint64_t numbers = 0,
             inner = 0;  // inner: elements from the first to the last of the axes looked at
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto size = static_cast<uint64_t>(tensor.sizes[axis]);
      const auto stride = static_cast<uint64_t>(tensor.strides[axis]);
      numbers |= size | stride | (size - 1);
      // As check_no_self_overlap sees it.
      if constexpr (is == Is::kOutput) wrong_ |= (stride <= inner) & (size != 1);
      inner += stride * (size - 1);
    }
    const auto begin = reinterpret_cast<uint64_t>(tensor.data);
    const uint64_t end = begin + (inner + 1) * dtype_bytes(tensor.dtype);
    wrong_ |= numbers >> 28 | (begin & 7) | static_cast<uint64_t>((begin >= end) | (begin == 0)) |
              static_cast<uint64_t>(tensor.rank ^ rank);
    if constexpr (last == Last::kContiguous) expect(tensor.strides[rank - 1] == 1);
    return {begin, end};
  }
  // The same, or an absent one.
  template <int rank, Is is, Last last = Last::kContiguous>
  Memory if_present(const flydsl_aot_tensor &optional) {
    return optional.rank == 0 ? Memory{} : tensor<rank, is, last>(optional);
  }

  void expect_apart(const Memory &a, const Memory &b) {
    wrong_ |= (a.begin < b.end) & (b.begin < a.end);
  }
  // The first `axes` of both have the same sizes.
  template <int axes>
  void expect_same_sizes(const flydsl_aot_tensor &a, const flydsl_aot_tensor &b) {
    uint64_t differs = 0;
    for (int axis = 0; axis < axes; ++axis)
      differs |= static_cast<uint64_t>(a.sizes[axis] ^ b.sizes[axis]);
    wrong_ |= differs;
  }

 private:
  uint64_t wrong_;  // 0: nothing yet
};

}  // namespace flydsl
