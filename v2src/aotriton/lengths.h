// Lengths that a caller gives as the differences of cumulative ones, where the C ABI wants each: of padded sequences, and of those whose
// starts are elsewhere.
#pragma once

#include "v2src/aotriton/sequences.h"
#include "v2src/aotriton/stream_memory.h"

namespace flydsl::aotriton {

// Of one side of a call.
class Lengths {
 public:
  Lengths(flydsl_aot_handle *handle, hipStream_t stream) : memory_(handle, stream) {}

  // Puts each length into device memory of its own where they are cumulative. The host computes them: waits for the device, and so
  // is refused within a capture.
  flydsl_aot_status separate(const char *function, Rows *rows);

 private:
  StreamMemory memory_;
};

}  // namespace flydsl::aotriton
