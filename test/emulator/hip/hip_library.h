// libflydsl_emu.so opened as a client opens libamdhip64.so: by dlopen and names. Found in ../../lib
// beside the test program.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/hip/flydsl_emu.h"
#include "emulator/hip/hip_abi.h"
#include "test/emulator/loader/test_objects.h"

namespace flydsl::emu::test {

inline std::string library_path() {
  return (program_dir() / ".." / ".." / "lib" / "libflydsl_emu.so").string();
}

// The functions under test, with the signatures of hip_runtime_api.h.
struct Hip {
  void *library = nullptr;

  hipError_t (*hipInit)(unsigned) = nullptr;
  hipError_t (*hipRuntimeGetVersion)(int *) = nullptr;
  hipError_t (*hipDriverGetVersion)(int *) = nullptr;
  hipError_t (*hipGetDeviceCount)(int *) = nullptr;
  hipError_t (*hipGetDevice)(int *) = nullptr;
  hipError_t (*hipSetDevice)(int) = nullptr;
  hipError_t (*hipDeviceGet)(int *, int) = nullptr;
  hipError_t (*hipDeviceGetName)(char *, int, int) = nullptr;
  hipError_t (*hipGetDeviceProperties)(void *, int) = nullptr;
  hipError_t (*hipGetDevicePropertiesR0600)(void *, int) = nullptr;
  hipError_t (*hipDeviceGetAttribute)(int *, hipDeviceAttribute_t, int) = nullptr;
  hipError_t (*hipDeviceTotalMem)(size_t *, int) = nullptr;
  hipError_t (*hipDeviceSynchronize)() = nullptr;
  hipError_t (*hipDeviceReset)() = nullptr;
  hipError_t (*hipMemGetInfo)(size_t *, size_t *) = nullptr;
  hipError_t (*hipMalloc)(void **, size_t) = nullptr;
  hipError_t (*hipFree)(void *) = nullptr;
  hipError_t (*hipHostMalloc)(void **, size_t, unsigned) = nullptr;
  hipError_t (*hipHostFree)(void *) = nullptr;
  hipError_t (*hipHostGetDevicePointer)(void **, void *, unsigned) = nullptr;
  hipError_t (*hipMallocAsync)(void **, size_t, hipStream_t) = nullptr;
  hipError_t (*hipFreeAsync)(void *, hipStream_t) = nullptr;
  hipError_t (*hipMemcpy)(void *, const void *, size_t, hipMemcpyKind) = nullptr;
  hipError_t (*hipMemcpyAsync)(void *, const void *, size_t, hipMemcpyKind, hipStream_t) = nullptr;
  hipError_t (*hipMemcpyWithStream)(void *, const void *, size_t, hipMemcpyKind,
                                    hipStream_t) = nullptr;
  hipError_t (*hipMemcpyHtoD)(void *, const void *, size_t) = nullptr;
  hipError_t (*hipMemcpyDtoH)(void *, void *, size_t) = nullptr;
  hipError_t (*hipMemcpyDtoD)(void *, void *, size_t) = nullptr;
  hipError_t (*hipMemcpyHtoDAsync)(void *, const void *, size_t, hipStream_t) = nullptr;
  hipError_t (*hipMemcpyDtoHAsync)(void *, void *, size_t, hipStream_t) = nullptr;
  hipError_t (*hipMemcpyDtoDAsync)(void *, void *, size_t, hipStream_t) = nullptr;
  hipError_t (*hipMemset)(void *, int, size_t) = nullptr;
  hipError_t (*hipMemsetAsync)(void *, int, size_t, hipStream_t) = nullptr;
  hipError_t (*hipMemsetD8)(void *, unsigned char, size_t) = nullptr;
  hipError_t (*hipMemsetD8Async)(void *, unsigned char, size_t, hipStream_t) = nullptr;
  hipError_t (*hipMemsetD16)(void *, unsigned short, size_t) = nullptr;
  hipError_t (*hipMemsetD16Async)(void *, unsigned short, size_t, hipStream_t) = nullptr;
  hipError_t (*hipMemsetD32)(void *, int, size_t) = nullptr;
  hipError_t (*hipMemsetD32Async)(void *, int, size_t, hipStream_t) = nullptr;
  hipError_t (*hipPointerGetAttributes)(hipPointerAttribute_t *, const void *) = nullptr;
  hipError_t (*hipStreamCreate)(hipStream_t *) = nullptr;
  hipError_t (*hipStreamCreateWithFlags)(hipStream_t *, unsigned) = nullptr;
  hipError_t (*hipStreamCreateWithPriority)(hipStream_t *, unsigned, int) = nullptr;
  hipError_t (*hipStreamDestroy)(hipStream_t) = nullptr;
  hipError_t (*hipStreamSynchronize)(hipStream_t) = nullptr;
  hipError_t (*hipStreamQuery)(hipStream_t) = nullptr;
  hipError_t (*hipStreamWaitEvent)(hipStream_t, hipEvent_t, unsigned) = nullptr;
  hipError_t (*hipStreamGetDevice)(hipStream_t, int *) = nullptr;
  hipError_t (*hipStreamGetFlags)(hipStream_t, unsigned *) = nullptr;
  hipError_t (*hipStreamGetPriority)(hipStream_t, int *) = nullptr;
  hipError_t (*hipStreamIsCapturing)(hipStream_t, hipStreamCaptureStatus *) = nullptr;
  hipError_t (*hipEventCreate)(hipEvent_t *) = nullptr;
  hipError_t (*hipEventCreateWithFlags)(hipEvent_t *, unsigned) = nullptr;
  hipError_t (*hipEventRecord)(hipEvent_t, hipStream_t) = nullptr;
  hipError_t (*hipEventSynchronize)(hipEvent_t) = nullptr;
  hipError_t (*hipEventQuery)(hipEvent_t) = nullptr;
  hipError_t (*hipEventElapsedTime)(float *, hipEvent_t, hipEvent_t) = nullptr;
  hipError_t (*hipEventDestroy)(hipEvent_t) = nullptr;
  hipError_t (*hipModuleLoad)(hipModule_t *, const char *) = nullptr;
  hipError_t (*hipModuleLoadData)(hipModule_t *, const void *) = nullptr;
  hipError_t (*hipModuleLoadDataEx)(hipModule_t *, const void *, unsigned, int *,
                                    void **) = nullptr;
  hipError_t (*hipModuleUnload)(hipModule_t) = nullptr;
  hipError_t (*hipModuleGetFunction)(hipFunction_t *, hipModule_t, const char *) = nullptr;
  hipError_t (*hipModuleGetGlobal)(void **, size_t *, hipModule_t, const char *) = nullptr;
  hipError_t (*hipModuleLaunchKernel)(hipFunction_t, unsigned, unsigned, unsigned, unsigned,
                                      unsigned, unsigned, unsigned, hipStream_t, void **,
                                      void **) = nullptr;
  hipError_t (*hipFuncGetAttribute)(int *, hipFunction_attribute, hipFunction_t) = nullptr;
  hipError_t (*hipFuncSetAttribute)(const void *, hipFunction_attribute, int) = nullptr;
  hipError_t (*hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(int *, hipFunction_t, int,
                                                                   size_t) = nullptr;
  hipError_t (*hipGetLastError)() = nullptr;
  hipError_t (*hipPeekAtLastError)() = nullptr;
  const char *(*hipGetErrorName)(hipError_t) = nullptr;
  const char *(*hipGetErrorString)(hipError_t) = nullptr;
  const char *(*flydsl_emu_version)() = nullptr;
  const char *(*flydsl_emu_last_fault)() = nullptr;
  const char *(*flydsl_emu_last_error)() = nullptr;
  int (*flydsl_emu_last_dispatch)(flydsl_emu_dispatch *) = nullptr;

  Hip() {
    library = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
#define FLYDSL_RESOLVE(name) resolve(#name, &name)
    FLYDSL_RESOLVE(hipInit);
    FLYDSL_RESOLVE(hipRuntimeGetVersion);
    FLYDSL_RESOLVE(hipDriverGetVersion);
    FLYDSL_RESOLVE(hipGetDeviceCount);
    FLYDSL_RESOLVE(hipGetDevice);
    FLYDSL_RESOLVE(hipSetDevice);
    FLYDSL_RESOLVE(hipDeviceGet);
    FLYDSL_RESOLVE(hipDeviceGetName);
    FLYDSL_RESOLVE(hipGetDeviceProperties);
    FLYDSL_RESOLVE(hipGetDevicePropertiesR0600);
    FLYDSL_RESOLVE(hipDeviceGetAttribute);
    FLYDSL_RESOLVE(hipDeviceTotalMem);
    FLYDSL_RESOLVE(hipDeviceSynchronize);
    FLYDSL_RESOLVE(hipDeviceReset);
    FLYDSL_RESOLVE(hipMemGetInfo);
    FLYDSL_RESOLVE(hipMalloc);
    FLYDSL_RESOLVE(hipFree);
    FLYDSL_RESOLVE(hipHostMalloc);
    FLYDSL_RESOLVE(hipHostFree);
    FLYDSL_RESOLVE(hipHostGetDevicePointer);
    FLYDSL_RESOLVE(hipMallocAsync);
    FLYDSL_RESOLVE(hipFreeAsync);
    FLYDSL_RESOLVE(hipMemcpy);
    FLYDSL_RESOLVE(hipMemcpyAsync);
    FLYDSL_RESOLVE(hipMemcpyWithStream);
    FLYDSL_RESOLVE(hipMemcpyHtoD);
    FLYDSL_RESOLVE(hipMemcpyDtoH);
    FLYDSL_RESOLVE(hipMemcpyDtoD);
    FLYDSL_RESOLVE(hipMemcpyHtoDAsync);
    FLYDSL_RESOLVE(hipMemcpyDtoHAsync);
    FLYDSL_RESOLVE(hipMemcpyDtoDAsync);
    FLYDSL_RESOLVE(hipMemset);
    FLYDSL_RESOLVE(hipMemsetAsync);
    FLYDSL_RESOLVE(hipMemsetD8);
    FLYDSL_RESOLVE(hipMemsetD8Async);
    FLYDSL_RESOLVE(hipMemsetD16);
    FLYDSL_RESOLVE(hipMemsetD16Async);
    FLYDSL_RESOLVE(hipMemsetD32);
    FLYDSL_RESOLVE(hipMemsetD32Async);
    FLYDSL_RESOLVE(hipPointerGetAttributes);
    FLYDSL_RESOLVE(hipStreamCreate);
    FLYDSL_RESOLVE(hipStreamCreateWithFlags);
    FLYDSL_RESOLVE(hipStreamCreateWithPriority);
    FLYDSL_RESOLVE(hipStreamDestroy);
    FLYDSL_RESOLVE(hipStreamSynchronize);
    FLYDSL_RESOLVE(hipStreamQuery);
    FLYDSL_RESOLVE(hipStreamWaitEvent);
    FLYDSL_RESOLVE(hipStreamGetDevice);
    FLYDSL_RESOLVE(hipStreamGetFlags);
    FLYDSL_RESOLVE(hipStreamGetPriority);
    FLYDSL_RESOLVE(hipStreamIsCapturing);
    FLYDSL_RESOLVE(hipEventCreate);
    FLYDSL_RESOLVE(hipEventCreateWithFlags);
    FLYDSL_RESOLVE(hipEventRecord);
    FLYDSL_RESOLVE(hipEventSynchronize);
    FLYDSL_RESOLVE(hipEventQuery);
    FLYDSL_RESOLVE(hipEventElapsedTime);
    FLYDSL_RESOLVE(hipEventDestroy);
    FLYDSL_RESOLVE(hipModuleLoad);
    FLYDSL_RESOLVE(hipModuleLoadData);
    FLYDSL_RESOLVE(hipModuleLoadDataEx);
    FLYDSL_RESOLVE(hipModuleUnload);
    FLYDSL_RESOLVE(hipModuleGetFunction);
    FLYDSL_RESOLVE(hipModuleGetGlobal);
    FLYDSL_RESOLVE(hipModuleLaunchKernel);
    FLYDSL_RESOLVE(hipFuncGetAttribute);
    FLYDSL_RESOLVE(hipFuncSetAttribute);
    FLYDSL_RESOLVE(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
    FLYDSL_RESOLVE(hipGetLastError);
    FLYDSL_RESOLVE(hipPeekAtLastError);
    FLYDSL_RESOLVE(hipGetErrorName);
    FLYDSL_RESOLVE(hipGetErrorString);
    FLYDSL_RESOLVE(flydsl_emu_version);
    FLYDSL_RESOLVE(flydsl_emu_last_fault);
    FLYDSL_RESOLVE(flydsl_emu_last_error);
    FLYDSL_RESOLVE(flydsl_emu_last_dispatch);
#undef FLYDSL_RESOLVE
  }

 private:
  template <typename Function>
  void resolve(const char *name, Function *function) {
    void *const symbol = dlsym(library, name);
    if (symbol == nullptr) {
      std::fprintf(stderr, "%s lacks %s\n", library_path().c_str(), name);
      std::abort();
    }
    std::memcpy(function, &symbol, sizeof symbol);
  }
};

inline Hip &hip() {
  static Hip functions;
  return functions;
}

#define EXPECT_HIP(code, call) \
  EXPECT_EQ(code, flydsl::emu::test::hip().call) << flydsl::emu::test::hip().flydsl_emu_last_error()
#define ASSERT_HIP(code, call) \
  ASSERT_EQ(code, flydsl::emu::test::hip().call) << flydsl::emu::test::hip().flydsl_emu_last_error()

// A module of the compiled test kernels.
class TestModule {
 public:
  explicit TestModule(const std::string &object = "gfx950_v5.co") {
    EXPECT_HIP(hipSuccess, hipModuleLoad(&module_, object_path(object).c_str()));
  }
  ~TestModule() {
    if (module_ == nullptr) return;
    EXPECT_HIP(hipSuccess, hipModuleUnload(module_));
  }
  TestModule(const TestModule &) = delete;
  TestModule &operator=(const TestModule &) = delete;
  hipModule_t get() const { return module_; }
  hipFunction_t function(const char *name) const {
    hipFunction_t result = nullptr;
    EXPECT_HIP(hipSuccess, hipModuleGetFunction(&result, module_, name)) << name;
    return result;
  }

 private:
  hipModule_t module_ = nullptr;
};

// Device memory with a copy of host values.
template <typename Value>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<Value> &values) : count_(values.size()) {
    EXPECT_HIP(hipSuccess, hipMalloc(&memory_, bytes()));
    EXPECT_HIP(hipSuccess, hipMemcpy(memory_, values.data(), bytes(), hipMemcpyHostToDevice));
  }
  ~DeviceArray() { EXPECT_HIP(hipSuccess, hipFree(memory_)); }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  void *get() const { return memory_; }
  size_t bytes() const { return count_ * sizeof(Value); }
  std::vector<Value> values() const {
    std::vector<Value> result(count_);
    EXPECT_HIP(hipSuccess, hipMemcpy(result.data(), memory_, bytes(), hipMemcpyDeviceToHost));
    return result;
  }

 private:
  size_t count_;
  void *memory_ = nullptr;
};

}  // namespace flydsl::emu::test
