// Device variables by their host shadows: hipMemcpyToSymbol and its family.
#include "emulator/hip/api_call.h"
#include "emulator/hip/copy.h"
#include "emulator/hip/registration.h"

namespace flydsl::emu::hip {
namespace {

hipError_t find(const void *symbol, char **address, size_t *bytes) {
  hipError_t error = hipSuccess;
  const Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  void *found = nullptr;
  error = registered_variable(symbol, *device, &found, bytes);
  *address = static_cast<char *>(found);
  return error;
}

hipError_t copy_symbol(const void *symbol, void *other, size_t bytes, size_t offset, bool to_symbol,
                       hipMemcpyKind kind, hipStream_t stream, Wait wait) {
  char *variable = nullptr;
  size_t has = 0;
  const hipError_t error = find(symbol, &variable, &has);
  if (error != hipSuccess) return error;
  if (offset > has || bytes > has - offset)
    return fail(hipErrorInvalidValue, "%zu bytes at %zu of a variable of %zu", bytes, offset, has);
  return to_symbol ? copy(variable + offset, other, bytes, kind, stream, wait)
                   : copy(other, variable + offset, bytes, kind, stream, wait);
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipGetSymbolAddress(void **address, const void *symbol) {
  return api_call([&] {
    if (address == nullptr) return fail(hipErrorInvalidValue, "the result is null");
    char *found = nullptr;
    size_t bytes = 0;
    const hipError_t error = find(symbol, &found, &bytes);
    if (error == hipSuccess) *address = found;
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGetSymbolSize(size_t *bytes, const void *symbol) {
  return api_call([&] {
    if (bytes == nullptr) return fail(hipErrorInvalidValue, "the result is null");
    char *found = nullptr;
    return find(symbol, &found, bytes);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes,
                                               size_t offset, hipMemcpyKind kind) {
  return api_call([&] {
    return copy_symbol(symbol, const_cast<void *>(from), bytes, offset, true, kind, nullptr,
                       Wait::kYes);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from,
                                                    size_t bytes, size_t offset, hipMemcpyKind kind,
                                                    hipStream_t stream) {
  return api_call([&] {
    return copy_symbol(symbol, const_cast<void *>(from), bytes, offset, true, kind, stream,
                       Wait::kNo);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes,
                                                 size_t offset, hipMemcpyKind kind) {
  return api_call(
      [&] { return copy_symbol(symbol, to, bytes, offset, false, kind, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes,
                                                      size_t offset, hipMemcpyKind kind,
                                                      hipStream_t stream) {
  return api_call(
      [&] { return copy_symbol(symbol, to, bytes, offset, false, kind, stream, Wait::kNo); });
}
