// hipGetLastError and its family, and the texts of error codes.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulator/hip/api_call.h"

namespace flydsl::emu::hip {
namespace {

// Plain data: a thread-local object with a destructor would keep the library loaded after dlclose.
thread_local hipError_t t_last_error = hipSuccess;
thread_local char t_explanation[1024];

struct ErrorText {
  hipError_t code;
  const char *name;
  const char *text;
};

constexpr ErrorText kErrorTexts[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration",
     "invalid configuration argument"},
    {hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue", "invalid pitch argument"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid device symbol"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {hipErrorMissingConfiguration, "hipErrorMissingConfiguration",
     "__global__ function call is not configured"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorIllegalState, "hipErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {hipErrorNotPermitted, "hipErrorNotPermitted", "operation not permitted"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

const ErrorText &error_text(hipError_t code) {
  static constexpr ErrorText kUnknown = {hipErrorUnknown, "hipErrorUnknown",
                                         "unrecognized error code"};
  for (const ErrorText &entry : kErrorTexts) {
    if (entry.code == code) return entry;
  }
  return kUnknown;
}

}  // namespace

hipError_t fail(hipError_t code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(t_explanation, sizeof t_explanation, format, arguments);
  va_end(arguments);
  static const bool log = std::getenv("FLYDSL_EMU_LOG") != nullptr;
  if (log) std::fprintf(stderr, "flydsl_emu: %s: %s\n", error_text(code).name, t_explanation);
  return code;
}

hipError_t record(hipError_t code) {
  if (code != hipSuccess && code != hipErrorNotReady) t_last_error = code;
  return code;
}

hipError_t peek_last_error() {
  return t_last_error;
}

hipError_t take_last_error() {
  const hipError_t code = t_last_error;
  t_last_error = hipSuccess;
  return code;
}

const char *last_explanation() {
  return t_explanation;
}

}  // namespace flydsl::emu::hip

FLYDSL_EMU_EXPORT hipError_t hipGetLastError() {
  return flydsl::emu::hip::take_last_error();
}
FLYDSL_EMU_EXPORT hipError_t hipPeekAtLastError() {
  return flydsl::emu::hip::peek_last_error();
}
FLYDSL_EMU_EXPORT const char *hipGetErrorName(hipError_t code) {
  return flydsl::emu::hip::error_text(code).name;
}
FLYDSL_EMU_EXPORT const char *hipGetErrorString(hipError_t code) {
  return flydsl::emu::hip::error_text(code).text;
}
