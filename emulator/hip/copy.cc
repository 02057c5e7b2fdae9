// A range that lies in device memory must lie in one live region as a whole: what a real device
// answers with a fault or silent damage is hipErrorInvalidValue here.
#include "emulator/hip/copy.h"

#include <cstring>
#include <shared_mutex>

#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/memory/address_space.h"
#include "emulator/memory/definedness.h"

namespace flydsl::emu::hip {
namespace {

enum class Side : uint8_t { kHost, kDevice, kAny };

bool empty(const hipExtent &extent) {
  return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

// From the first to the last byte of the box; false when that passes 2^64.
bool span_of(const Box &box, const hipExtent &bytes, size_t *span) {
  size_t rows = 0, slices = 0;
  return !__builtin_mul_overflow(bytes.height - 1, box.row_pitch, &rows) &&
         !__builtin_mul_overflow(bytes.depth - 1, box.slice_pitch, &slices) &&
         !__builtin_add_overflow(rows, slices, span) &&
         !__builtin_add_overflow(*span, bytes.width, span) &&
         *span <= SIZE_MAX - reinterpret_cast<uintptr_t>(box.data);
}

hipError_t check_box(const char *which, const Box &box, const hipExtent &bytes, Side side,
                     const RegionSnapshot &memory, bool *pageable) {
  if (box.data == nullptr) return fail(hipErrorInvalidValue, "%s is null", which);
  if ((bytes.height > 1 && box.row_pitch < bytes.width) ||
      (bytes.depth > 1 && box.slice_pitch / bytes.height < box.row_pitch))
    return fail(hipErrorInvalidPitchValue, "%s: a pitch of %zu for rows of %zu bytes", which,
                box.row_pitch, bytes.width);
  size_t span = 0;
  if (!span_of(box, bytes, &span))
    return fail(hipErrorInvalidValue, "%s: %zu x %zu x %zu bytes pass the address space", which,
                bytes.width, bytes.height, bytes.depth);
  const uint64_t begin = reinterpret_cast<uint64_t>(box.data);
  const Region *region = memory.find(begin);
  *pageable = region == nullptr;
  if (region == nullptr) {
    if (side != Side::kDevice) return hipSuccess;
    return fail(hipErrorInvalidValue, "%s %p is not in device memory", which, box.data);
  }
  if (span > region->end - begin)
    return fail(hipErrorInvalidValue,
                "%s: %zu bytes at %p pass the end of the %s region [0x%llx, 0x%llx)", which, span,
                box.data, region->what, static_cast<unsigned long long>(region->begin),
                static_cast<unsigned long long>(region->end));
  return hipSuccess;
}

struct Copy {
  Box to, from;
  hipExtent bytes;
  Side to_side, from_side;

  hipError_t check(const RegionSnapshot &memory, bool *pageable) const {
    bool to_pageable = false, from_pageable = false;
    hipError_t error = check_box("destination", to, bytes, to_side, memory, &to_pageable);
    if (error == hipSuccess)
      error = check_box("source", from, bytes, from_side, memory, &from_pageable);
    *pageable = to_pageable || from_pageable;
    return error;
  }
  hipError_t run() const {
    std::shared_lock<LaunchGate> in_place(launch_gate());
    bool pageable = false;
    const hipError_t error = check(*AddressSpace::instance().snapshot(), &pageable);
    if (error != hipSuccess) return error;
    for (size_t z = 0; z < bytes.depth; ++z)
      for (size_t y = 0; y < bytes.height; ++y)
        copy_row(static_cast<char *>(to.data) + z * to.slice_pitch + y * to.row_pitch,
                 static_cast<char *>(from.data) + z * from.slice_pitch + y * from.row_pitch);
    return hipSuccess;
  }
  void copy_row(char *row, const char *source) const {
    std::memmove(row, source, bytes.width);
    if (Definedness::wanted())
      Definedness::instance().copy(reinterpret_cast<uint64_t>(row),
                                   reinterpret_cast<uint64_t>(source), bytes.width);
  }
};

struct Fill {
  Box to;
  uint32_t value;
  size_t element_bytes;
  hipExtent elements;

  hipError_t check(const RegionSnapshot &memory) const {
    bool pageable = false;
    const hipExtent bytes = {elements.width * element_bytes, elements.height, elements.depth};
    return check_box("destination", to, bytes, Side::kDevice, memory, &pageable);
  }
  hipError_t run() const {
    std::shared_lock<LaunchGate> in_place(launch_gate());
    const hipError_t error = check(*AddressSpace::instance().snapshot());
    if (error != hipSuccess) return error;
    for (size_t z = 0; z < elements.depth; ++z)
      for (size_t y = 0; y < elements.height; ++y)
        fill_row(static_cast<char *>(to.data) + z * to.slice_pitch + y * to.row_pitch);
    return hipSuccess;
  }
  void fill_row(char *row) const {
    if (Definedness::wanted())
      Definedness::instance().define(reinterpret_cast<uint64_t>(row),
                                     elements.width * element_bytes);
    if (element_bytes == 1) {
      std::memset(row, static_cast<int>(value & 0xff), elements.width);
      return;
    }
    for (size_t x = 0; x < elements.width; ++x)
      std::memcpy(row + x * element_bytes, &value, element_bytes);
  }
};

hipError_t submit(Work work, hipStream_t handle, Wait wait) {
  hipError_t error = hipSuccess;
  const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
  if (!stream || !work.run) return error;
  if (wait == Wait::kNo) return stream->submit(std::move(work));
  error = refuse_on_capturing_stream(*stream, "a synchronous copy or fill");
  return error == hipSuccess ? stream->run(std::move(work)) : error;
}

}  // namespace

hipError_t boxes_of(const hipMemcpy3DParms *p, Box *to, Box *from) {
  if (p == nullptr) return fail(hipErrorInvalidValue, "the parameters are null");
  if (p->srcArray != nullptr || p->dstArray != nullptr)
    return fail(hipErrorNotSupported, "hipArrays are not emulated");
  const auto place = [](const hipPitchedPtr &pointer, const hipPos &at) {
    Box box = {pointer.ptr, pointer.pitch, pointer.pitch * pointer.ysize};
    if (box.data != nullptr)
      box.data =
          static_cast<char *>(box.data) + at.z * box.slice_pitch + at.y * box.row_pitch + at.x;
    return box;
  };
  *to = place(p->dstPtr, p->dstPos);
  *from = place(p->srcPtr, p->srcPos);
  return hipSuccess;
}

hipError_t make_copy(const Box &to, const Box &from, const hipExtent &bytes, hipMemcpyKind kind,
                     Work *work, bool *pageable) {
  *pageable = false;
  if (kind > hipMemcpyDefault)
    return fail(hipErrorInvalidMemcpyDirection, "copy kind is %u, 0 to 4 are allowed",
                static_cast<unsigned>(kind));
  work->type = hipGraphNodeTypeMemcpy;
  if (empty(bytes)) return hipSuccess;
  const bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  const bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  Copy copy = {to, from, bytes, Side::kAny, Side::kAny};
  if (kind != hipMemcpyDefault) {
    copy.to_side = to_device ? Side::kDevice : Side::kHost;
    copy.from_side = from_device ? Side::kDevice : Side::kHost;
  }
  const hipError_t error = copy.check(*AddressSpace::instance().snapshot(), pageable);
  if (error == hipSuccess) work->run = [copy] { return copy.run(); };
  return error;
}

hipError_t make_fill(const Box &to, uint32_t value, size_t element_bytes, const hipExtent &elements,
                     Work *work) {
  work->type = hipGraphNodeTypeMemset;
  if (empty(elements)) return hipSuccess;
  if (elements.width > SIZE_MAX / element_bytes)
    return fail(hipErrorInvalidValue, "%zu elements", elements.width);
  if (reinterpret_cast<uintptr_t>(to.data) % element_bytes != 0)
    return fail(hipErrorInvalidValue, "destination %p is not aligned to %zu bytes", to.data,
                element_bytes);
  const Fill fill = {to, value, element_bytes, elements};
  const hipError_t error = fill.check(*AddressSpace::instance().snapshot());
  if (error == hipSuccess) work->run = [fill] { return fill.run(); };
  return error;
}

hipError_t copy(const Box &to, const Box &from, const hipExtent &bytes, hipMemcpyKind kind,
                hipStream_t stream, Wait wait) {
  Work work;
  bool pageable = false;
  const hipError_t error = make_copy(to, from, bytes, kind, &work, &pageable);
  if (error != hipSuccess) return error;
  if (wait == Wait::kNo && pageable) {
    // In a capture there is nothing to wait for yet.
    hipError_t lookup = hipSuccess;
    const std::shared_ptr<Stream> target = stream_or_fail(stream, &lookup);
    if (!target || !work.run) return lookup;
    return target->run(std::move(work));
  }
  return submit(std::move(work), stream, wait);
}

hipError_t fill(const Box &to, uint32_t value, size_t element_bytes, const hipExtent &elements,
                hipStream_t stream, Wait wait) {
  Work work;
  const hipError_t error = make_fill(to, value, element_bytes, elements, &work);
  return error == hipSuccess ? submit(std::move(work), stream, wait) : error;
}

}  // namespace flydsl::emu::hip
