// hipMemcpy* and hipMemset* of two and three dimensions, and the pitched allocations for them.
// hipArrays do not exist here.
#include "emulator/hip/api_call.h"
#include "emulator/hip/copy.h"

FLYDSL_EMU_EXPORT hipError_t hipMalloc(void **pointer, size_t bytes);

namespace flydsl::emu::hip {
namespace {

// A multiple of this many bytes a row is what AMD's runtime hands out.
constexpr size_t kPitchUnitBytes = 256;

hipError_t copy_3d(const hipMemcpy3DParms *p, hipStream_t stream, Wait wait) {
  Box to, from;
  const hipError_t error = boxes_of(p, &to, &from);
  return error == hipSuccess ? copy(to, from, p->extent, p->kind, stream, wait) : error;
}

// One end of hipMemcpyParam2D.
hipError_t end_of(const char *what, hipMemoryType type, void *host, void *device, size_t pitch,
                  size_t x, size_t y, Box *box) {
  if (type != hipMemoryTypeHost && type != hipMemoryTypeDevice && type != hipMemoryTypeUnified)
    return fail(hipErrorNotSupported,
                "%s memory type %u; 1 (host), 2 (device) and 11 (unified) are emulated", what,
                static_cast<unsigned>(type));
  void *const start = type == hipMemoryTypeHost ? host : device;
  *box = {start, pitch, 0};
  if (start != nullptr) box->data = static_cast<char *>(start) + y * pitch + x;
  return hipSuccess;
}

hipError_t copy_parameters(const hip_Memcpy2D *p, hipStream_t stream, Wait wait) {
  if (p == nullptr) return fail(hipErrorInvalidValue, "the parameters are null");
  Box to, from;
  hipError_t error = end_of("source", p->srcMemoryType, const_cast<void *>(p->srcHost),
                            p->srcDevice, p->srcPitch, p->srcXInBytes, p->srcY, &from);
  if (error == hipSuccess)
    error = end_of("destination", p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch,
                   p->dstXInBytes, p->dstY, &to);
  if (error != hipSuccess) return error;
  return copy(to, from, {p->WidthInBytes, p->Height, 1}, hipMemcpyDefault, stream, wait);
}

hipError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                   size_t height, hipMemcpyKind kind, hipStream_t stream, Wait wait) {
  return copy({to, to_pitch, 0}, {const_cast<void *>(from), from_pitch, 0}, {width, height, 1},
              kind, stream, wait);
}

hipError_t fill_2d(void *to, size_t pitch, int value, size_t width, size_t height,
                   hipStream_t stream, Wait wait) {
  return fill({to, pitch, 0}, static_cast<uint32_t>(value), 1, {width, height, 1}, stream, wait);
}

hipError_t fill_3d(const hipPitchedPtr &to, int value, const hipExtent &extent, hipStream_t stream,
                   Wait wait) {
  return fill({to.ptr, to.pitch, to.pitch * to.ysize}, static_cast<uint32_t>(value), 1, extent,
              stream, wait);
}

hipError_t allocate_pitched(void **pointer, size_t *pitch, size_t width, size_t rows) {
  if (pointer == nullptr || pitch == nullptr)
    return fail(hipErrorInvalidValue, "pointer or pitch is null");
  *pointer = nullptr;
  *pitch = 0;
  if (width == 0 || rows == 0) return hipSuccess;
  if (width > SIZE_MAX - kPitchUnitBytes)
    return fail(hipErrorOutOfMemory, "rows of %zu bytes", width);
  const size_t row = (width + kPitchUnitBytes - 1) / kPitchUnitBytes * kPitchUnitBytes;
  size_t bytes = 0;
  if (__builtin_mul_overflow(row, rows, &bytes))
    return fail(hipErrorOutOfMemory, "%zu rows of %zu bytes", rows, row);
  const hipError_t error = hipMalloc(pointer, bytes);
  if (error == hipSuccess) *pitch = row;
  return error;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width,
                                            size_t height) {
  return api_call([&] { return allocate_pitched(pointer, pitch, width, height); });
}

FLYDSL_EMU_EXPORT hipError_t hipMalloc3D(hipPitchedPtr *pointer, hipExtent extent) {
  return api_call([&] {
    if (pointer == nullptr) return fail(hipErrorInvalidValue, "pointer is null");
    size_t rows = 0;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
      return fail(hipErrorOutOfMemory, "%zu x %zu rows", extent.height, extent.depth);
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return allocate_pitched(&pointer->ptr, &pointer->pitch, extent.width, rows);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from,
                                         size_t from_pitch, size_t width, size_t height,
                                         hipMemcpyKind kind) {
  return api_call([&] {
    return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, nullptr, Wait::kYes);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpy3D(const hipMemcpy3DParms *parameters) {
  return api_call([&] { return copy_3d(parameters, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyParam2D(const hip_Memcpy2D *parameters) {
  return api_call([&] { return copy_parameters(parameters, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width,
                                         size_t height) {
  return api_call([&] { return fill_2d(to, pitch, value, width, height, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemset3D(hipPitchedPtr to, int value, hipExtent extent) {
  return api_call([&] { return fill_3d(to, value, extent, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                                              size_t from_pitch, size_t width, size_t height,
                                              hipMemcpyKind kind, hipStream_t stream) {
  return api_call([&] {
    return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, stream, Wait::kNo);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *parameters,
                                              hipStream_t stream) {
  return api_call([&] { return copy_3d(parameters, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D *parameters,
                                                   hipStream_t stream) {
  return api_call([&] { return copy_parameters(parameters, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width,
                                              size_t height, hipStream_t stream) {
  return api_call([&] { return fill_2d(to, pitch, value, width, height, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemset3DAsync(hipPitchedPtr to, int value, hipExtent extent,
                                              hipStream_t stream) {
  return api_call([&] { return fill_3d(to, value, extent, stream, Wait::kNo); });
}
