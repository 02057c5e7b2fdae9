#include "v2src/aotriton/error.h"

#include <cstdarg>
#include <cstdio>

namespace flydsl::aotriton {

hipError_t hip_error(flydsl_aot_status status) {
  switch (status) {
    case FLYDSL_AOT_OK:
      return hipSuccess;
    case FLYDSL_AOT_UNSUPPORTED_ARCH:
    case FLYDSL_AOT_NO_KERNEL:
      return hipErrorNoBinaryForGpu;
    case FLYDSL_AOT_ARCHIVE_NOT_FOUND:
      return hipErrorFileNotFound;
    case FLYDSL_AOT_ARCHIVE_IO:
      return hipErrorOperatingSystem;
    case FLYDSL_AOT_COMPILE_FAILED:
      return hipErrorNoBinaryForGpu;
    case FLYDSL_AOT_COMPILER_NOT_FOUND:
    case FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND:
      return hipErrorSharedObjectInitFailed;
    case FLYDSL_AOT_NO_DEVICE:
      return hipErrorNoDevice;
    case FLYDSL_AOT_OUT_OF_DEVICE_MEMORY:
    case FLYDSL_AOT_OUT_OF_HOST_MEMORY:
      return hipErrorOutOfMemory;
    case FLYDSL_AOT_DEVICE_LOST:
      return hipErrorLaunchFailure;
    case FLYDSL_AOT_KERNEL_LOAD_FAILED:
      return hipErrorInvalidKernelFile;
    case FLYDSL_AOT_PROCESS_FORKED:
      return hipErrorNotInitialized;
    case FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH:
      return hipErrorStreamCaptureUnsupported;
    default:
      break;
  }
  switch (FLYDSL_AOT_STATUS_FAMILY(status)) {
    case 1:
      return hipErrorInvalidValue;
    case 2:
      return hipErrorNotSupported;
    case 3:
      return hipErrorInvalidImage;
    default:
      return hipErrorUnknown;
  }
}

flydsl_aot_status refuse(const char *function, flydsl_aot_status status, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return flydsl_aot_set_last_error(status, function, message);
}

}  // namespace flydsl::aotriton
