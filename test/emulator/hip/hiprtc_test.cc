// hiprtc: compile, look up lowered names, run; and what goes wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/emulator/hip/client_api.h"

namespace flydsl::emu::test {
namespace {

using hiprtcProgram = void *;
using Strings = const char *const *;

template <typename... Arguments>
unsigned rtc(const char *name, Arguments... arguments) {
  return find_function<unsigned(Arguments...)>(name)(arguments...);
}

enum {
  kOk = 0,
  kInvalidInput = 3,
  kInvalidProgram = 4,
  kInvalidOption = 5,
  kCompilation = 6,
  kNoNamesAfter = 8,
  kNoLoweredBefore = 9,
  kNameNotValid = 10
};

hiprtcProgram make(const char *source, int headers = 0, Strings texts = nullptr,
                   Strings names = nullptr) {
  hiprtcProgram program = nullptr;
  EXPECT_EQ(rtc("hiprtcCreateProgram", &program, source, "my_source.hip", headers, texts, names),
            0u);
  return program;
}

unsigned compile(hiprtcProgram program, std::vector<const char *> options = {}) {
  return rtc("hiprtcCompileProgram", program, static_cast<int>(options.size()),
             static_cast<Strings>(options.data()));
}

std::string log_of(hiprtcProgram program) {
  size_t bytes = 0;
  EXPECT_EQ(rtc("hiprtcGetProgramLogSize", program, &bytes), 0u);
  std::string log(bytes, 'x');
  EXPECT_EQ(rtc("hiprtcGetProgramLog", program, log.data()), 0u);
  EXPECT_EQ(log.back(), 0);
  return log;
}

constexpr char kSource[] = R"(
#include "factor.h"
__constant__ int bias = 5;
template <typename T, int N>
__global__ void scale(T *data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = data[i] * N * FACTOR + bias + OPTION;
}
)";

TEST(Hiprtc, FaultsNameLinesOfTheProgram) {
  hiprtcProgram program =
      make("extern \"C\" __global__ void past_end(int *data) {\n  data[threadIdx.x] = 1;\n}\n");
  ASSERT_EQ(compile(program, {"-gline-tables-only"}), 0u) << log_of(program);
  size_t bytes = 0;
  ASSERT_EQ(rtc("hiprtcGetCodeSize", program, &bytes), 0u);
  std::vector<char> code(bytes);
  ASSERT_EQ(rtc("hiprtcGetCode", program, code.data()), 0u);
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  ASSERT_HIP(hipSuccess, hipModuleLoadData(&module, code.data()));
  ASSERT_HIP(hipSuccess, hipModuleGetFunction(&function, module, "past_end"));
  DeviceArray<int> data(std::vector<int>(32, 0));
  void *pointer = data.get();
  void *arguments[] = {&pointer};
  ASSERT_HIP(hipSuccess,
             hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT_HIP(hipErrorLaunchFailure, hipDeviceSynchronize());
  const std::string fault = hip().flydsl_emu_last_fault();
  EXPECT_NE(fault.find(" (my_source.hip:2) `global_store_dword"), std::string::npos) << fault;
  EXPECT_HIP(hipSuccess, hipDeviceReset());
  EXPECT_EQ(rtc("hiprtcDestroyProgram", &program), 0u);
}

TEST(Hiprtc, TemplateByNameExpressionRuns) {
  const char *text = "#define FACTOR 10\n", *name = "factor.h";
  hiprtcProgram program = make(kSource, 1, &text, &name);
  const char *expression = "scale<float, 3>", *lowered = nullptr;
  EXPECT_EQ(rtc("hiprtcAddNameExpression", program, expression), 0u);
  EXPECT_EQ(rtc("hiprtcAddNameExpression", program, "&bias"), 0u);
  EXPECT_EQ(rtc("hiprtcGetLoweredName", program, expression, &lowered), unsigned(kNoLoweredBefore));
  ASSERT_EQ(compile(program, {"--gpu-architecture=gfx950", "-DOPTION=100", "-O2"}), 0u)
      << log_of(program);
  EXPECT_EQ(rtc("hiprtcAddNameExpression", program, "late"), unsigned(kNoNamesAfter));
  ASSERT_EQ(rtc("hiprtcGetLoweredName", program, expression, &lowered), 0u);
  const char *variable = nullptr;
  ASSERT_EQ(rtc("hiprtcGetLoweredName", program, "&bias", &variable), 0u);
  EXPECT_STREQ(variable, "bias");
  const char *unknown = nullptr;
  EXPECT_EQ(rtc("hiprtcGetLoweredName", program, "other", &unknown), unsigned(kNameNotValid));
  size_t bytes = 0;
  ASSERT_EQ(rtc("hiprtcGetCodeSize", program, &bytes), 0u);
  std::vector<char> code(bytes);
  ASSERT_EQ(rtc("hiprtcGetCode", program, code.data()), 0u);

  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  ASSERT_HIP(hipSuccess, hipModuleLoadData(&module, code.data()));
  ASSERT_HIP(hipSuccess, hipModuleGetFunction(&function, module, lowered));
  DeviceArray<float> data(std::vector<float>(100, 2));
  void *pointer = data.get();
  int count = 99;
  void *arguments[] = {&pointer, &count};
  ASSERT_HIP(hipSuccess,
             hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  std::vector<float> expected(100, 2 * 3 * 10 + 5 + 100);
  expected[99] = 2;
  EXPECT_EQ(data.values(), expected);
  EXPECT_HIP(hipSuccess, hipModuleUnload(module));
  EXPECT_EQ(rtc("hiprtcDestroyProgram", &program), 0u);
  EXPECT_EQ(program, nullptr);
  EXPECT_EQ(rtc("hiprtcDestroyProgram", &program), unsigned(kInvalidProgram));
}

TEST(Hiprtc, ErrorsNameTheSource) {
  hiprtcProgram program = make("__global__ void k(int *p) { *p = undeclared; }\n");
  EXPECT_EQ(compile(program), unsigned(kCompilation));
  EXPECT_NE(log_of(program).find("my_source.hip:1:"), std::string::npos) << log_of(program);
  EXPECT_NE(log_of(program).find("undeclared"), std::string::npos) << log_of(program);
  size_t bytes = 0;
  EXPECT_EQ(rtc("hiprtcGetCodeSize", program, &bytes), unsigned(kInvalidProgram));
  EXPECT_EQ(rtc("hiprtcDestroyProgram", &program), 0u);
}

TEST(Hiprtc, RefusesOptionsAndHeadersThatReachOut) {
  hiprtcProgram program = make("__global__ void k(int *p) { *p = 1; }\n");
  for (const char *option :
       {"-o", "-o/tmp/x", "-Xclang", "-fplugin=x.so", "@file", "-save-temps", "other.hip", "-c"}) {
    EXPECT_EQ(compile(program, {option}), unsigned(kInvalidOption)) << option;
    EXPECT_NE(log_of(program).find(option), std::string::npos);
  }
  EXPECT_EQ(
      compile(program, {"-DA=$(touch${IFS}/tmp/flydsl_injected);`touch /tmp/flydsl_injected`"}), 0u)
      << log_of(program);
  EXPECT_NE(access("/tmp/flydsl_injected", F_OK), 0) << "options pass through a shell";
  EXPECT_EQ(compile(program, {"--offload-arch=gfx90a"}), 0u) << log_of(program);
  EXPECT_EQ(compile(program, {"--offload-arch", "gfx1"}), unsigned(kCompilation));
  EXPECT_EQ(rtc("hiprtcDestroyProgram", &program), 0u);
  for (const char *name : {"../up.h", "/tmp/absolute.h", "a/../../b.h", ""}) {
    const char *text = "";
    program = make("", 1, &text, &name);
    EXPECT_EQ(compile(program), unsigned(kCompilation)) << name;
    EXPECT_EQ(rtc("hiprtcDestroyProgram", &program), 0u);
  }
}

TEST(Hiprtc, Arguments) {
  hiprtcProgram program = nullptr;
  EXPECT_EQ(rtc("hiprtcCreateProgram", &program, static_cast<const char *>(nullptr), "n", 0,
                static_cast<Strings>(nullptr), static_cast<Strings>(nullptr)),
            unsigned(kInvalidInput));
  int major = 0, minor = -1;
  EXPECT_EQ(rtc("hiprtcVersion", &major, &minor), 0u);
  EXPECT_GE(major, 9);
  EXPECT_EQ(compile(&program), unsigned(kInvalidProgram));
  EXPECT_STREQ(find_function<const char *(unsigned)>("hiprtcGetErrorString")(kCompilation),
               "HIPRTC_ERROR_COMPILATION");
  program = make("template <int N> __global__ void t(int *p) { *p = N; }\n");
  EXPECT_EQ(rtc("hiprtcAddNameExpression", program, "t<"), 0u);
  EXPECT_EQ(compile(program), unsigned(kCompilation)) << "no such expression";
  EXPECT_EQ(rtc("hiprtcDestroyProgram", &program), 0u);
}

}  // namespace
}  // namespace flydsl::emu::test
