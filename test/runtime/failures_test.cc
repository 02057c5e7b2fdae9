// Every device function that a call, a query or a prefetch uses fails in turn, for every operator: the status is that failure's own, the
// message names function and code, nothing is written unless kernels were launched before, the caller's device and the runtime's
// sticky error are as before, and the same handle then gives the right bits. (Public reports: B54.)
#include <functional>

#include "flydsl_aot_generated/abi.h"
#include "test/src/archive/archive_fixture.h"
#include "test/support/between_handle.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

const char *const kEmulator = FLYDSL_EMULATOR_LIBRARY;

// What a failure of `call` with HIP's `code` must be told as.
flydsl_aot_status expected_status(HipCall call, int code) {
  if (code == 2) return FLYDSL_AOT_OUT_OF_DEVICE_MEMORY;
  if (code == 100) return FLYDSL_AOT_NO_DEVICE;
  if (code == 700 || code == 719) return FLYDSL_AOT_DEVICE_LOST;
  const bool loads = call == kModuleLoadData || call == kModuleGetFunction;
  if (call == kModuleLoadData && code == 900) return FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH;
  return loads ? FLYDSL_AOT_KERNEL_LOAD_FAILED : FLYDSL_AOT_DEVICE_ERROR;
}

// Out of memory, no binary for this GPU, a fault of earlier work, a capture on another stream, unknown; the first time with all.
std::vector<int> codes_of(HipCall call, int number) {
  if (number > 1) return {719};
  if (call == kModuleLoadData) return {2, 209, 719, 900, 999};
  if (call == kModuleLaunchKernel) return {2, 719, 999};
  return {719, 999};
}

class Failures : public ::testing::TestWithParam<ProblemLine> {
 protected:
  void SetUp() override {
    between_ = open_hip_between(HIP_BETWEEN, kEmulator);
    ASSERT_NE(between_, nullptr);
    between_->reset();
    memory_.open({"emulator", "", ""});
    problem_ = std::make_unique<DeviceProblem>(memory_, GetParam());
    ASSERT_EQ(problem_->launch(memory_.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    right_ = problem_->results();
    problem_->poison();
  }
  void TearDown() override {
    if (between_) between_->reset();
  }

  using Entry = std::function<flydsl_aot_status(flydsl_aot_handle *)>;

  // What was done on a handle before.
  enum Before { kNothing, kPrefetch, kTheSameCall };
  Handle open_after(Before before) {
    Handle handle = open_between();
    if (before == kPrefetch) {
      EXPECT_EQ(problem_->prefetch(handle.get()), FLYDSL_AOT_OK);
    } else if (before == kTheSameCall) {
      // The second is kept for later ones.
      for (int i = 0; i < 2; ++i) EXPECT_EQ(problem_->launch(handle.get()), FLYDSL_AOT_OK);
    }
    (void)problem_->results();
    problem_->poison();
    return handle;
  }

  // The calls of each device function that `entry` makes on a new handle.
  std::vector<int> calls_of(const Entry &entry, Before before) {
    const Handle handle = open_after(before);
    between_->reset();
    EXPECT_EQ(entry(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    std::vector<int> calls(between_->calls, between_->calls + kHipCalls);
    (void)problem_->results();
    problem_->poison();
    return calls;
  }

  void expect_told(const Entry &entry, Before before, HipCall call, int number, int code) {
    SCOPED_TRACE(std::string(between_->name(call)) + " number " + std::to_string(number) +
                 " fails with " + std::to_string(code) + ", after " + std::to_string(before));
    const Handle handle = open_after(before);
    between_->fail(call, number, code);
    EXPECT_EQ(entry(handle.get()), expected_status(call, code)) << flydsl_aot_last_error();
    const std::string message = flydsl_aot_last_error();
    EXPECT_NE(message.find(between_->name(call)), std::string::npos) << message;
    EXPECT_NE(message.find("HIP error " + std::to_string(code)), std::string::npos) << message;
    EXPECT_EQ(message.find(std::string("flydsl_aot_") + GetParam().op), 0u) << message;
    EXPECT_EQ(between_->peek_at_last_error(), 0);
    EXPECT_EQ(between_->calls[kModuleLaunchKernel] - (call == kModuleLaunchKernel),
              number_launched(call, number));
    if (call != kModuleLaunchKernel || number == 1) {
      EXPECT_TRUE(problem_->outputs_are_poison());
    }
    // No state is left.
    between_->reset();
    (void)problem_->results();
    problem_->poison();
    EXPECT_EQ(problem_->launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    EXPECT_EQ(problem_->results(), right_);
    problem_->poison();
  }

  static int number_launched(HipCall call, int number) {
    return call == kModuleLaunchKernel ? number - 1 : 0;
  }

  HipBetween *between_ = nullptr;
  tools::LibraryHandle memory_;
  std::unique_ptr<DeviceProblem> problem_;
  std::vector<std::vector<uint8_t>> right_;
};

TEST_P(Failures, OfEveryFunctionAreTold) {
  const struct {
    const char *name;
    Entry entry;
  } entries[] = {
      {"call", [&](flydsl_aot_handle *handle) { return problem_->launch(handle); }},
      {"prefetch", [&](flydsl_aot_handle *handle) { return problem_->prefetch(handle); }},
      {"query", [&](flydsl_aot_handle *handle) { return problem_->query(handle); }}};
  for (const auto &[name, entry] : entries) {
    SCOPED_TRACE(name);
    for (const Before before : {kNothing, kPrefetch, kTheSameCall}) {
      const std::vector<int> calls = calls_of(entry, before);
      EXPECT_EQ(calls[kModuleLaunchKernel], name == std::string("call") ? GetParam().launches : 0);
      EXPECT_EQ(calls[kMalloc] + calls[kFree] + calls[kMemcpy] + calls[kDeviceSynchronize], 0)
          << "a hidden allocation, copy or wait";
      for (int call = 0; call < kHipCalls; ++call)
        for (int number = 1; number <= calls[call]; ++number)
          for (const int code : codes_of(static_cast<HipCall>(call), number))
            expect_told(entry, before, static_cast<HipCall>(call), number, code);
    }
  }
}

// An archive of the right build without kernels.
TEST_P(Failures, KernelMissing) {
  TempFolder folder;
  const std::string path = folder.file("flydsl_aot.gfx950.fda");
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  spec.library_version = FLYDSL_AOT_VERSION;
  write_bytes(path, build_or_die(spec));
  const Handle handle = open_between(folder.path().c_str());
  for (const flydsl_aot_status status :
       {problem_->launch(handle.get()), problem_->prefetch(handle.get()),
        problem_->query(handle.get())}) {
    EXPECT_EQ(status, FLYDSL_AOT_NO_KERNEL);
    const std::string message = flydsl_aot_last_error();
    EXPECT_NE(message.find("'" + path + "' lists no kernel of " + GetParam().op), std::string::npos)
        << message;
  }
  EXPECT_TRUE(problem_->outputs_are_poison());
}

// Code objects that are damaged in the file, while it is open; then they are as before, and the same handle works.
TEST_P(Failures, KernelDamaged) {
  flydsl_aot_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(flydsl_aot_get_info(memory_.get(), &info), FLYDSL_AOT_OK);
  TempFolder folder;
  const std::string path = folder.file("flydsl_aot.gfx950.fda");
  std::filesystem::copy_file(info.archive_path, path);
  archive::Header header{};
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  const std::streamoff frames = static_cast<std::streamoff>(sizeof header + header.index_bytes);
  std::vector<char> bytes(header.file_bytes - static_cast<uint64_t>(frames));
  file.seekg(frames).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good());

  const Handle handle = open_between(path.c_str());
  const std::vector<char> zeros(bytes.size());
  file.seekp(frames).write(zeros.data(), static_cast<std::streamsize>(zeros.size())).flush();
  EXPECT_EQ(problem_->query(handle.get()), FLYDSL_AOT_OK) << "a query reads no code object";
  for (const flydsl_aot_status status :
       {problem_->launch(handle.get()), problem_->prefetch(handle.get())}) {
    EXPECT_EQ(status, FLYDSL_AOT_ARCHIVE_CORRUPT);
    EXPECT_NE(std::string(flydsl_aot_last_error()).find(path), std::string::npos)
        << flydsl_aot_last_error();
  }
  EXPECT_TRUE(problem_->outputs_are_poison());
  file.seekp(frames).write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  EXPECT_EQ(problem_->launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  EXPECT_EQ(problem_->results(), right_);
}

TEST_P(Failures, Workspace) {
  if (problem_->workspace_bytes() == 0) GTEST_SKIP() << "needs none";
  const Handle handle = open_between();
  // The caller could not allocate it, and goes on without.
  void *none = this;
  between_->fail(kMalloc, 1, 2);
  EXPECT_EQ(flydsl_aot_device_malloc(handle.get(), problem_->workspace_bytes(), &none),
            FLYDSL_AOT_OUT_OF_DEVICE_MEMORY);
  EXPECT_NE(std::string(flydsl_aot_last_error())
                .find(std::to_string(problem_->workspace_bytes()) + " bytes"),
            std::string::npos)
      << flydsl_aot_last_error();
  EXPECT_EQ(none, nullptr);
  between_->reset();
  char *const whole = static_cast<char *>(problem_->workspace());
  const struct {
    void *data;
    uint64_t bytes;
  } wrong[] = {{nullptr, problem_->workspace_bytes()},
               // attention_backward does with less than it asks for: separate passes (attention_backward.h).
               {whole, GetParam().op == std::string("attention_backward") ? 15 : problem_->workspace_bytes() - 1},
               {whole + 8, problem_->workspace_bytes()}};
  for (const auto &[data, bytes] : wrong) {
    problem_->set_workspace(data, bytes);
    EXPECT_EQ(problem_->launch(handle.get()), FLYDSL_AOT_INVALID_WORKSPACE);
    EXPECT_EQ(between_->calls[kModuleLaunchKernel], 0);
  }
  EXPECT_TRUE(problem_->outputs_are_poison());
  problem_->set_workspace(whole, problem_->workspace_bytes());
  EXPECT_EQ(problem_->launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  EXPECT_EQ(problem_->results(), right_);
}

INSTANTIATE_TEST_SUITE_P(Operators, Failures, ::testing::ValuesIn(operator_problems()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(Problems, EveryOperatorHasOne) {
  EXPECT_EQ(operators_without_problem(), "") << "add a row to test/support/operator_problems.cc";
}

}  // namespace
}  // namespace flydsl::test
