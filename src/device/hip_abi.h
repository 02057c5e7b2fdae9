// The part of HIP's binary interface that this library relies on, per major version. No HIP header
// is needed to build; every number here is frozen by HIP's own compatibility rules.
//
// Sources: hip_runtime_api.h of HIP 5.2 and 6.x/7.x. The structure offsets were computed from those
// headers with offsetof; structures are read by offset from a buffer larger than any known layout.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flydsl::device {

using HipError = int;  // hipError_t
using HipStream = void *;
using HipModule = void *;
using HipFunction = void *;

constexpr HipError kHipSuccess = 0;
constexpr HipError kHipErrorOutOfMemory = 2;
constexpr HipError kHipErrorNotInitialized = 3;
constexpr HipError kHipErrorInsufficientDriver = 35;
constexpr HipError kHipErrorNoDevice = 100;
// After these the device is of no use to the process. (709, context is destroyed, is what HIP says of a stream that is none.)
constexpr HipError kHipErrorEccNotCorrectable = 214;
constexpr HipError kHipErrorIllegalAddress = 700;
constexpr HipError kHipErrorLaunchTimeOut = 702;
constexpr HipError kHipErrorAssert = 710;
constexpr HipError kHipErrorLaunchFailure = 719;
constexpr bool device_is_lost(HipError code) {
  return code == kHipErrorEccNotCorrectable || code == kHipErrorIllegalAddress ||
         code == kHipErrorLaunchTimeOut || code == kHipErrorAssert ||
         code == kHipErrorLaunchFailure;
}
constexpr HipError kHipErrorStreamCaptureUnsupported = 900;  // first and last of the capture family
constexpr HipError kHipErrorStreamCaptureWrongThread = 908;

constexpr int kHipMemcpyHostToDevice = 1;
constexpr int kHipMemcpyDeviceToHost = 2;

constexpr int kHipStreamCaptureStatusNone = 0;   // hipStreamCaptureStatus
constexpr int kHipStreamCaptureModeRelaxed = 2;  // hipStreamCaptureMode

// Handles 1 and 2 are hipStreamLegacy and hipStreamPerThread: streams of whatever device is
// current.
constexpr uintptr_t kHipLastSpecialStream = 2;

// Tags of hipModuleLaunchKernel's `extra` list.
inline void *launch_param_buffer_pointer() {
  return reinterpret_cast<void *>(uintptr_t{1});
}
inline void *launch_param_buffer_size() {
  return reinterpret_cast<void *>(uintptr_t{2});
}
inline void *launch_param_end() {
  return reinterpret_cast<void *>(uintptr_t{3});
}

// hipRuntimeGetVersion: major * 10,000,000 + minor * 100,000 + patch.
constexpr int hip_major(int runtime_version) {
  return runtime_version / 10000000;
}
constexpr int hip_minor(int runtime_version) {
  return runtime_version / 100000 % 100;
}

// Where hipDeviceProp_t keeps what is needed. One row per layout.
struct PropertiesLayout {
  const char *symbol;    // function that fills this layout
  size_t bytes;          // sizeof
  size_t name;           // char[256]
  size_t compute_units;  // int multiProcessorCount
  size_t target_id;      // char[256] gcnArchName
};

// The layout has its own symbol name since HIP 6.0 (hipDeviceProp_tR0600).
constexpr PropertiesLayout kPropertiesR0600 = {"hipGetDevicePropertiesR0600", 1472, 0, 388, 1160};
// HIP 5.x has only the unversioned symbol, with the layout later called hipDeviceProp_tR0000. (HIP
// 6 keeps the same symbol for old programs; it is not used there.)
constexpr PropertiesLayout kPropertiesR0000 = {"hipGetDeviceProperties", 792, 0, 336, 396};

constexpr size_t kPropertiesBufferBytes = 16384;
constexpr size_t kPropertiesStringBytes = 256;

}  // namespace flydsl::device
