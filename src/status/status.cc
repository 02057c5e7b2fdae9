#include "src/status/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "src/log/log.h"

namespace flydsl {
namespace {

struct StatusText {
  flydsl_aot_status code;
  const char *name;
  const char *sentence;
};

// The only place with names and sentences; test/src/status checks that it covers the header's enum.
constexpr StatusText kTexts[] = {
    {FLYDSL_AOT_OK, "OK", "Success"},
    {FLYDSL_AOT_INVALID_ARGUMENT, "INVALID_ARGUMENT",
     "An argument is null where an object is required, or has an unknown value"},
    {FLYDSL_AOT_INVALID_STRUCT_SIZE, "INVALID_STRUCT_SIZE",
     "The struct_size of a parameter struct is none that this library knows"},
    {FLYDSL_AOT_INVALID_SHAPE, "INVALID_SHAPE",
     "The rank or sizes of a tensor are wrong or disagree with another operand"},
    {FLYDSL_AOT_INVALID_STRIDE, "INVALID_STRIDE", "The strides of a tensor are not allowed"},
    {FLYDSL_AOT_INVALID_DTYPE, "INVALID_DTYPE",
     "The element types of the operands disagree or are unknown"},
    {FLYDSL_AOT_INVALID_POINTER, "INVALID_POINTER",
     "The data of a non-empty tensor is null, misaligned or overlaps another operand"},
    {FLYDSL_AOT_INVALID_MASK, "INVALID_MASK", "The mask has a bound below -1 or lacks an anchor"},
    {FLYDSL_AOT_INVALID_SCALE, "INVALID_SCALE", "The scale is NaN, infinite or out of range"},
    {FLYDSL_AOT_INVALID_WORKSPACE, "INVALID_WORKSPACE",
     "The workspace is missing or smaller than the query asked for"},
    {FLYDSL_AOT_UNSUPPORTED_DTYPE, "UNSUPPORTED_DTYPE",
     "The operator does not support this element type"},
    {FLYDSL_AOT_UNSUPPORTED_HEAD_DIM, "UNSUPPORTED_HEAD_DIM",
     "The operator does not support this head dim"},
    {FLYDSL_AOT_UNSUPPORTED_ARCH, "UNSUPPORTED_ARCH", "There are no kernels for this architecture"},
    {FLYDSL_AOT_UNSUPPORTED_FEATURE, "UNSUPPORTED_FEATURE",
     "The operator does not support this feature"},
    {FLYDSL_AOT_UNSUPPORTED_SIZE, "UNSUPPORTED_SIZE",
     "A size is beyond a stated limit of the operator"},
    {FLYDSL_AOT_NEVER_EXECUTED, "NEVER_EXECUTED",
     "The kernels of this architecture were compiled, but never executed"},
    {FLYDSL_AOT_NO_KERNEL, "NO_KERNEL", "The archive holds no kernel that fits the problem"},
    {FLYDSL_AOT_ARCHIVE_NOT_FOUND, "ARCHIVE_NOT_FOUND", "No kernel archive was found"},
    {FLYDSL_AOT_ARCHIVE_IO, "ARCHIVE_IO", "A kernel archive could not be read"},
    {FLYDSL_AOT_ARCHIVE_CORRUPT, "ARCHIVE_CORRUPT", "A kernel archive is damaged"},
    {FLYDSL_AOT_ARCHIVE_VERSION, "ARCHIVE_VERSION",
     "A kernel archive has a format version that this library does not read"},
    {FLYDSL_AOT_ARCHIVE_MISMATCH, "ARCHIVE_MISMATCH",
     "A kernel archive belongs to another build of the library"},
    {FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND, "DEVICE_LIBRARY_NOT_FOUND",
     "No usable HIP runtime or emulator library was found"},
    {FLYDSL_AOT_NO_DEVICE, "NO_DEVICE", "There is no device"},
    {FLYDSL_AOT_DEVICE_ERROR, "DEVICE_ERROR", "The device runtime reported an error"},
    {FLYDSL_AOT_OUT_OF_DEVICE_MEMORY, "OUT_OF_DEVICE_MEMORY", "Device memory is exhausted"},
    {FLYDSL_AOT_DEVICE_LOST, "DEVICE_LOST",
     "A kernel fault or hardware error ended the use of the device"},
    {FLYDSL_AOT_KERNEL_LOAD_FAILED, "KERNEL_LOAD_FAILED",
     "The device runtime refused to load a kernel"},
    {FLYDSL_AOT_PROCESS_FORKED, "PROCESS_FORKED",
     "The device was in use before this process was forked and cannot be used in the child"},
    {FLYDSL_AOT_COMPILER_NOT_FOUND, "COMPILER_NOT_FOUND",
     "The kernel has to be compiled at run time, and no usable hipRTC was found"},
    {FLYDSL_AOT_COMPILE_FAILED, "COMPILE_FAILED", "hipRTC did not compile a kernel"},
    {FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH, "CAPTURE_NEEDS_PREFETCH",
     "A kernel that is not loaded yet cannot be captured into a graph; prefetch it first"},
    {FLYDSL_AOT_OUT_OF_HOST_MEMORY, "OUT_OF_HOST_MEMORY", "Host memory is exhausted"},
    {FLYDSL_AOT_INTERNAL, "INTERNAL", "A bug in this library; please report the message"},
};

const StatusText *find(flydsl_aot_status code) {
  for (const StatusText &row : kTexts) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

// Fixed storage without a destructor: a thread_local object with one would keep the library loaded
// until the thread ends (glibc pins it), so dlclose would not unload it.
constexpr size_t kLastErrorBytes = 4096;
thread_local char last_error_text[kLastErrorBytes];

std::string format_arguments(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length <= 0) return {};
  std::string result(static_cast<size_t>(length), '\0');
  std::vsnprintf(result.data(), result.size() + 1, format, arguments);
  return result;
}

}  // namespace

const char *status_name(flydsl_aot_status code) noexcept {
  const StatusText *row = find(code);
  return row ? row->name : "UNKNOWN_STATUS";
}

const char *status_sentence(flydsl_aot_status code) noexcept {
  const StatusText *row = find(code);
  return row ? row->sentence : "Unknown status number";
}

const char *last_error() noexcept {
  return last_error_text;
}

Status error(flydsl_aot_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string message = format_arguments(format, arguments);
  va_end(arguments);
  return {code, std::move(message)};
}

std::string text(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string result = format_arguments(format, arguments);
  va_end(arguments);
  return result;
}

std::string errno_text(int number) {
  char buffer[128];
  // The GNU variant, which may return static text instead of filling the buffer.
  return strerror_r(number, buffer, sizeof buffer);
}

void copy_utf8(char *destination, size_t capacity, const char *source) noexcept {
  if (capacity == 0) return;
  size_t length = strnlen(source, capacity);
  if (length == capacity) {
    --length;
    // Continuation bytes are 10xxxxxx: step back to the start of the character that was cut.
    while (length > 0 && (static_cast<unsigned char>(source[length]) & 0xC0) == 0x80) --length;
  }
  std::memcpy(destination, source, length);
  destination[length] = '\0';
}

flydsl_aot_status publish(const char *function, flydsl_aot_status code,
                          const char *message) noexcept {
  copy_utf8(last_error_text, kLastErrorBytes / 2, function);
  const size_t name = std::strlen(last_error_text);
  std::memcpy(last_error_text + name, ": ", 2);
  copy_utf8(last_error_text + name + 2, kLastErrorBytes - name - 2, message);
  FLYDSL_LOG(Error, "%s: %s", status_name(code), last_error_text);
  return code;
}

flydsl_aot_status publish_exception(const char *function) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return publish(function, FLYDSL_AOT_OUT_OF_HOST_MEMORY, "host memory is exhausted");
  } catch (const std::exception &exception) {
    return publish(function, FLYDSL_AOT_INTERNAL, exception.what());
  } catch (...) {
    return publish(function, FLYDSL_AOT_INTERNAL,
                   "an unknown exception was caught at the C boundary");
  }
}

}  // namespace flydsl
