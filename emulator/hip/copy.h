// Copies and fills of up to three dimensions, as work for a stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/hip/hip_abi.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

// Where a box of bytes lies. Pitches are from row to row and from slice to slice; a box of one row
// needs none.
struct Box {
  void *data = nullptr;
  size_t row_pitch = 0;
  size_t slice_pitch = 0;
};

// The boxes of HIP's three-dimensional copies; refuses hipArrays.
hipError_t boxes_of(const hipMemcpy3DParms *parameters, Box *to, Box *from);

enum class Wait : bool { kNo, kYes };

// Checks, and makes the work; `work->run` stays empty when there is nothing to copy.
hipError_t make_copy(const Box &to, const Box &from, const hipExtent &bytes, hipMemcpyKind kind,
                     Work *work, bool *pageable);
hipError_t make_fill(const Box &to, uint32_t value, size_t element_bytes, const hipExtent &elements,
                     Work *work);

// A copy to or from memory that HIP does not know (pageable) is waited for in any case, as on a
// device, where it goes through a staging buffer.
hipError_t copy(const Box &to, const Box &from, const hipExtent &bytes, hipMemcpyKind kind,
                hipStream_t stream, Wait wait);
hipError_t fill(const Box &to, uint32_t value, size_t element_bytes, const hipExtent &elements,
                hipStream_t stream, Wait wait);

inline hipError_t copy(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                       hipStream_t stream, Wait wait) {
  return copy({to, 0, 0}, {const_cast<void *>(from), 0, 0}, {bytes, 1, 1}, kind, stream, wait);
}

}  // namespace flydsl::emu::hip
