// Launches: both argument forms, LDS, variables, hidden arguments, refusals, faults.
#include <gtest/gtest.h>

#include <numeric>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

constexpr unsigned kBlock = 64;

std::string reason() {
  return hip().flydsl_emu_last_error();
}

hipError_t launch(hipFunction_t function, unsigned groups, std::vector<void *> arguments,
                  unsigned dynamic_lds_bytes = 0) {
  return hip().hipModuleLaunchKernel(function, groups, 1, 1, kBlock, 1, 1, dynamic_lds_bytes,
                                     nullptr, arguments.data(), nullptr);
}

std::vector<float> ramp(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * step;
  return values;
}

TEST(Launch, VectorAddByParametersAndByBuffer) {
  TestModule module;
  const hipFunction_t function = module.function("vector_add");
  constexpr uint32_t kCount = 1000;
  DeviceArray<float> a(ramp(kCount, 1)), b(ramp(kCount, 100));
  for (const bool by_buffer : {false, true}) {
    DeviceArray<float> out(std::vector<float>(kCount, -1));
    struct {
      void *a, *b, *out;
      uint32_t count;
    } arguments = {a.get(), b.get(), out.get(), kCount};
    size_t bytes = sizeof arguments;
    if (by_buffer) {
      void *extra[] = {reinterpret_cast<void *>(HIP_LAUNCH_PARAM_BUFFER_POINTER_VALUE), &arguments,
                       reinterpret_cast<void *>(HIP_LAUNCH_PARAM_BUFFER_SIZE_VALUE), &bytes,
                       reinterpret_cast<void *>(HIP_LAUNCH_PARAM_END_VALUE)};
      ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(function, 16, 1, 1, kBlock, 1, 1, 0, nullptr,
                                                   nullptr, extra));
    } else {
      ASSERT_EQ(hipSuccess, launch(function, 16,
                                   {&arguments.a, &arguments.b, &arguments.out, &arguments.count}))
          << reason();
    }
    const std::vector<float> values = out.values();
    for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], 101.0f * static_cast<float>(i)) << i;
    flydsl_emu_dispatch counts = {};
    counts.struct_size = sizeof counts;
    ASSERT_EQ(hip().flydsl_emu_last_dispatch(&counts), 0);
    EXPECT_GT(counts.wave_instructions, 16u * 4);
    EXPECT_EQ(counts.mfma_flops, 0u);
    EXPECT_GT(counts.host_seconds, 0);
  }
}

TEST(Launch, DispatchCountsRespectTheStructSize) {
  flydsl_emu_dispatch counts = {};
  EXPECT_NE(hip().flydsl_emu_last_dispatch(nullptr), 0);
  EXPECT_NE(hip().flydsl_emu_last_dispatch(&counts), 0) << "struct_size 0";
}

TEST(Launch, ArgumentsByValue) {
  TestModule module;
  const hipFunction_t function = module.function("scale_by_value");
  struct {
    float factor;
    char padding[3];
    double offset;
  } scale = {3.0f, {}, 0.5};
  DeviceArray<float> data(ramp(64, 1));
  void *pointer = data.get();
  uint32_t count = 64;
  signed char sign = -1;
  ASSERT_EQ(hipSuccess, launch(function, 1, {&pointer, &count, &scale, &sign})) << reason();
  const std::vector<float> values = data.values();
  for (int i = 0; i < 64; ++i) ASSERT_EQ(values[i], -(3.0f * static_cast<float>(i) + 0.5f)) << i;
}

TEST(Launch, StaticAndDynamicLds) {
  TestModule module;
  std::vector<uint32_t> in(256), expected(256);
  std::iota(in.begin(), in.end(), 0);
  for (uint32_t i = 0; i < 256; ++i) expected[i] = i / 64 * 64 + 63 - i % 64;
  for (const char *name : {"reverse_static", "reverse_dynamic"}) {
    DeviceArray<uint32_t> data(in);
    void *pointer = data.get();
    const unsigned dynamic_lds_bytes = std::string(name) == "reverse_dynamic" ? 256 : 0;
    ASSERT_EQ(hipSuccess, launch(module.function(name), 4, {&pointer}, dynamic_lds_bytes))
        << reason();
    EXPECT_EQ(data.values(), expected) << name;
  }
}

TEST(Launch, VariablesKeepTheirValueBetweenLaunches) {
  TestModule module;
  DeviceArray<int> out(std::vector<int>(3, 0));
  void *pointer = out.get();
  const hipFunction_t function = module.function("read_variables");
  ASSERT_EQ(hipSuccess, hip().hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr,
                                                    std::vector<void *>{&pointer}.data(), nullptr))
      << reason();
  EXPECT_EQ(out.values(), (std::vector<int>{41, 41, 1}));
  ASSERT_EQ(hipSuccess, hip().hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr,
                                                    std::vector<void *>{&pointer}.data(), nullptr))
      << reason();
  EXPECT_EQ(out.values(), (std::vector<int>{42, 42, 1}));
}

TEST(Launch, HiddenArguments) {
  TestModule module;
  DeviceArray<uint32_t> out(std::vector<uint32_t>(13, 99));
  void *pointer = out.get();
  void *arguments[] = {&pointer};
  ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(module.function("hidden_arguments"), 2, 3, 4, 32, 2,
                                               1, 0, nullptr, arguments, nullptr));
  EXPECT_EQ(out.values(), (std::vector<uint32_t>{2, 3, 4, 32, 2, 1, 0, 0, 0, 0, 0, 0, 3}));
}

TEST(Launch, RefusalsChangeNothing) {
  TestModule module;
  const hipFunction_t function = module.function("vector_add"),
                      small = module.function("at_most_128");
  DeviceArray<float> data(std::vector<float>(64, 5));
  void *pointer = data.get();
  uint32_t count = 64;
  void *arguments[] = {&pointer, &pointer, &pointer, &count};
  void *with_null[] = {&pointer, nullptr, &pointer, &count};
  size_t short_bytes = 27;
  char buffer[32] = {};
  void *const pointer_marker = reinterpret_cast<void *>(HIP_LAUNCH_PARAM_BUFFER_POINTER_VALUE);
  void *const size_marker = reinterpret_cast<void *>(HIP_LAUNCH_PARAM_BUFFER_SIZE_VALUE);
  void *const end_marker = reinterpret_cast<void *>(HIP_LAUNCH_PARAM_END_VALUE);
  void *short_extra[] = {pointer_marker, buffer, size_marker, &short_bytes, end_marker};
  void *no_size[] = {pointer_marker, buffer, end_marker};
  void *garbage_extra[] = {&pointer, buffer, end_marker};
  const struct {
    hipFunction_t function;
    unsigned grid[3], block[3], lds;
    void **parameters;
    void **extra;
    hipError_t code;
    const char *mentions;
  } cases[] = {
      {nullptr, {1, 1, 1}, {64, 1, 1}, 0, arguments, nullptr, hipErrorInvalidHandle, "function"},
      {function,
       {0, 1, 1},
       {64, 1, 1},
       0,
       arguments,
       nullptr,
       hipErrorInvalidConfiguration,
       "grid (0, 1, 1)"},
      {function,
       {1, 65536, 1},
       {64, 1, 1},
       0,
       arguments,
       nullptr,
       hipErrorInvalidConfiguration,
       "65535"},
      {function,
       {1u << 26, 1, 1},
       {64, 1, 1},
       0,
       arguments,
       nullptr,
       hipErrorInvalidConfiguration,
       "2^32"},
      {function,
       {1, 1, 1},
       {0, 1, 1},
       0,
       arguments,
       nullptr,
       hipErrorInvalidConfiguration,
       "block (0, 1, 1)"},
      {function,
       {1, 1, 1},
       {64, 32, 1},
       0,
       arguments,
       nullptr,
       hipErrorInvalidConfiguration,
       "2048 work-items"},
      {function,
       {1, 1, 1},
       {1025, 1, 1},
       0,
       arguments,
       nullptr,
       hipErrorInvalidConfiguration,
       "1025"},
      {small, {1, 1, 1}, {192, 1, 1}, 0, arguments, nullptr, hipErrorLaunchFailure, "at most 128"},
      {function,
       {1, 1, 1},
       {64, 1, 1},
       160 * 1024 + 1,
       arguments,
       nullptr,
       hipErrorInvalidValue,
       "163841"},
      {function, {1, 1, 1}, {64, 1, 1}, 0, nullptr, nullptr, hipErrorInvalidValue, "28 bytes"},
      {function,
       {1, 1, 1},
       {64, 1, 1},
       0,
       with_null,
       nullptr,
       hipErrorInvalidValue,
       "kernelParams[1]"},
      {function, {1, 1, 1}, {64, 1, 1}, 0, arguments, short_extra, hipErrorInvalidValue, "both"},
      {function, {1, 1, 1}, {64, 1, 1}, 0, nullptr, short_extra, hipErrorInvalidValue, "has 27"},
      {function, {1, 1, 1}, {64, 1, 1}, 0, nullptr, no_size, hipErrorInvalidValue, "size"},
      {function,
       {1, 1, 1},
       {64, 1, 1},
       0,
       nullptr,
       garbage_extra,
       hipErrorInvalidValue,
       "extra[0]"},
  };
  for (const auto &c : cases) {
    EXPECT_EQ(c.code, hip().hipModuleLaunchKernel(c.function, c.grid[0], c.grid[1], c.grid[2],
                                                  c.block[0], c.block[1], c.block[2], c.lds,
                                                  nullptr, c.parameters, c.extra))
        << c.mentions;
    EXPECT_NE(reason().find(c.mentions), std::string::npos) << reason();
  }
  EXPECT_HIP(hipErrorInvalidHandle,
             hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0,
                                   reinterpret_cast<hipStream_t>(&pointer), arguments, nullptr));
  EXPECT_EQ(data.values(), std::vector<float>(64, 5));
  EXPECT_HIP(hipSuccess, hipDeviceSynchronize()) << "a refusal is no fault";
}

TEST(Launch, OutOfBoundsIsAFaultWithItsText) {
  TestModule module;
  DeviceArray<float> data(std::vector<float>(64, 5));
  void *pointer = data.get();
  uint32_t count = 64;
  const hipFunction_t function = module.function("write_past_end");
  ASSERT_EQ(hipSuccess, launch(function, 2, {&pointer, &count})) << reason();
  EXPECT_EQ(hipErrorLaunchFailure, hip().hipDeviceSynchronize());
  EXPECT_NE(reason().find("write_past_end"), std::string::npos) << reason();
  const std::string fault = hip().flydsl_emu_last_fault();
  EXPECT_NE(fault.find("write_past_end"), std::string::npos) << fault;
  EXPECT_NE(fault.find("store"), std::string::npos) << "names the instruction: " << fault;
  EXPECT_NE(fault.find("hipMalloc"), std::string::npos) << "names the region: " << fault;
  EXPECT_EQ(hip().hipDeviceSynchronize(), hipErrorLaunchFailure);
  EXPECT_EQ(hip().hipStreamSynchronize(nullptr), hipErrorLaunchFailure) << "stays";
  EXPECT_EQ(hip().hipGetLastError(), hipErrorLaunchFailure);
  EXPECT_EQ(launch(function, 1, {&pointer, &count}), hipErrorLaunchFailure) << "no later launch";
  float element = 0;
  EXPECT_EQ(hip().hipMemcpy(&element, pointer, 4, hipMemcpyDeviceToHost), hipErrorLaunchFailure);
  void *more = nullptr;
  EXPECT_HIP(hipSuccess, hipMalloc(&more, 16)) << "memory can be had and given back";
  EXPECT_HIP(hipSuccess, hipFree(more));
  EXPECT_HIP(hipSuccess, hipDeviceReset());
  EXPECT_HIP(hipSuccess, hipDeviceSynchronize());
  count = 63;  // writes elements 0 to 63
  EXPECT_EQ(hipSuccess, launch(function, 1, {&pointer, &count})) << reason();
  EXPECT_EQ(data.values(), std::vector<float>(64, 1));
}

TEST(Launch, UseAfterFreeIsAFault) {
  TestModule module;
  void *pointer = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&pointer, 1 << 20));
  ASSERT_HIP(hipSuccess, hipFree(pointer));
  ASSERT_EQ(hipSuccess, launch(module.function("at_most_128"), 1, {&pointer})) << reason();
  EXPECT_EQ(hipErrorLaunchFailure, hip().hipDeviceSynchronize());
  EXPECT_HIP(hipSuccess, hipDeviceReset());
}

TEST(Launch, CodeIsReadOnly) {
  TestModule module;
  void *table = nullptr;
  size_t bytes = 0;
  ASSERT_HIP(hipSuccess, hipModuleGetGlobal(&table, &bytes, module.get(), "table"));
  ASSERT_EQ(hipSuccess, launch(module.function("at_most_128"), 1, {&table})) << reason();
  EXPECT_EQ(hipErrorLaunchFailure, hip().hipDeviceSynchronize());
  EXPECT_NE(std::string(hip().flydsl_emu_last_fault()).find("code object"), std::string::npos)
      << hip().flydsl_emu_last_fault();
  EXPECT_HIP(hipSuccess, hipDeviceReset());
}

}  // namespace
}  // namespace flydsl::emu::test
