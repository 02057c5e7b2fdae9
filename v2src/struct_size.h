// The struct_size rule of the C ABI (flydsl_aot.h): structs only ever grow at their end.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/status/status.h"

namespace flydsl {

// No struct of this ABI comes near it; a larger number is an uninitialised field, not a later
// version.
constexpr uint32_t kMaxStructBytes = 4096;

// `first` is the struct's size in its first version, the least that is accepted; `known` this
// version's.
Status check_struct_size(const char *type, uint32_t seen, size_t first, size_t known,
                         const void *caller_struct, bool is_input);

// Copies a caller's input struct of this or another version: what it lacks is zero, what it has
// beyond this version must be zero.
template <typename T>
Status read_struct(const char *type, const T *caller, T *result, size_t first_size = sizeof(T)) {
  if (!caller) return error(FLYDSL_AOT_INVALID_ARGUMENT, "%s is NULL", type);
  const size_t seen = caller->struct_size;
  FLYDSL_RETURN_IF_ERROR(
      check_struct_size(type, caller->struct_size, first_size, sizeof(T), caller, true));
  *result = {};
  std::memcpy(static_cast<void *>(result), caller, seen < sizeof(T) ? seen : sizeof(T));
  return {};
}

// A caller's input struct, which is the caller's own where that is of this version: calls are many, and the structs large.
template <typename T>
class ReadStruct {
 public:
  Status read(const char *type, const T *caller, size_t first_size = sizeof(T)) {
    struct_ = caller;
    if (caller && caller->struct_size == sizeof(T)) return {};
    struct_ = &copy_;
    return read_struct(type, caller, &copy_, first_size);
  }
  const T &get() const { return *struct_; }

 private:
  const T *struct_ = nullptr;
  T copy_;
};

template <typename T>
Status check_output_struct(const char *type, const T *caller) {
  if (!caller) return error(FLYDSL_AOT_INVALID_ARGUMENT, "%s is NULL", type);
  return check_struct_size(type, caller->struct_size, sizeof(T), sizeof(T), caller, false);
}

// Fills a caller's output struct that check_output_struct accepted, keeping its struct_size; what a
// later version has beyond this one becomes zero.
template <typename T>
void write_struct(T value, T *caller) {
  const uint32_t caller_bytes = caller->struct_size;
  value.struct_size = caller_bytes;
  std::memcpy(static_cast<void *>(caller), &value, sizeof(T));
  std::memset(reinterpret_cast<char *>(caller) + sizeof(T), 0, caller_bytes - sizeof(T));
}

}  // namespace flydsl
