// Launches under the timing model: modes, the two functions, the variables, refusals.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "test/emulator/hip/client_api.h"

namespace flydsl::emu::test {
namespace {

FLYDSL_HIP_FUNCTION(hipModuleLaunchCooperativeKernel, hipFunction_t, unsigned, unsigned, unsigned,
                    unsigned, unsigned, unsigned, unsigned, hipStream_t, void **)

constexpr unsigned kBlock = 64, kGroups = 1000;
constexpr uint32_t kCount = kBlock * kGroups;

int set_timing(const char *mode) {
  static auto *const function = find_function<int(const char *)>("flydsl_emu_set_timing");
  return function(mode);
}
std::string last_timing(int detail) {
  static auto *const function = find_function<const char *(int)>("flydsl_emu_last_timing");
  return function(detail);
}
std::string recent_timing(uint64_t back) {
  static auto *const function =
      find_function<const char *(uint64_t, int)>("flydsl_emu_recent_timing");
  return function(back, 0);
}
uint64_t launch_count() {
  static auto *const function = find_function<uint64_t()>("flydsl_emu_launch_count");
  return function();
}
std::string reason() {
  return hip().flydsl_emu_last_error();
}

class Timing : public testing::Test {
 protected:
  void SetUp() override { path_ = testing::TempDir() + "timing." + std::to_string(getpid()); }
  void TearDown() override {
    EXPECT_EQ(set_timing(nullptr), 0);
    for (const char *variable : {"FLYDSL_EMU_TIMING", "FLYDSL_EMU_TIMING_MODE",
                                 "FLYDSL_EMU_TIMING_CONSTANTS", "FLYDSL_EMU_TIMING_SAVE"})
      unsetenv(variable);
    for (const char *end : {"", ".constants", ".save", ".sets"}) std::remove((path_ + end).c_str());
  }
  // Adds on the device; how many sums are right afterwards. -1: refused.
  int run() {
    TestModule module;
    DeviceArray<float> a(std::vector<float>(kCount, 1)), b(std::vector<float>(kCount, 2)),
        out(std::vector<float>(kCount, 0));
    void *pointers[] = {a.get(), b.get(), out.get()};
    uint32_t count = kCount;
    void *arguments[] = {&pointers[0], &pointers[1], &pointers[2], &count};
    error_ = hip().hipModuleLaunchKernel(module.function("vector_add"), kGroups, 1, 1, kBlock, 1, 1,
                                         0, nullptr, arguments, nullptr);
    if (error_ != hipSuccess) return -1;
    EXPECT_HIP(hipSuccess, hipDeviceSynchronize());
    const std::vector<float> sums = out.values();
    return int(std::count(sums.begin(), sums.end(), 3.0f));
  }
  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> result;
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }

  std::string path_;
  hipError_t error_ = hipSuccess;
};

TEST_F(Timing, IsOffUnlessAskedFor) {
  EXPECT_EQ(run(), int(kCount));
  EXPECT_EQ(last_timing(0), "");
  EXPECT_NE(reason().find("was not modelled"), std::string::npos) << reason();
}

TEST_F(Timing, SampleRunsAFewWorkGroupsAndFullAll) {
  ASSERT_EQ(set_timing("sample"), 0);
  const int sampled = run();
  EXPECT_GT(sampled, 0);
  EXPECT_LT(sampled, int(kCount) / 2);
  const std::string in_sample = last_timing(0);
  ASSERT_EQ(set_timing("full"), 0);
  EXPECT_EQ(run(), int(kCount));
  const auto sample = nlohmann::json::parse(in_sample),
             full = nlohmann::json::parse(last_timing(0));
  EXPECT_EQ(sample["groups"], kGroups);
  EXPECT_LT(sample["groups_sampled"], 10u);
  EXPECT_NEAR(sample["seconds"].get<double>(), full["seconds"].get<double>(),
              0.02 * full["seconds"].get<double>());
}

TEST_F(Timing, TheKeysOfALaunch) {
  ASSERT_EQ(set_timing("sample"), 0);
  (void)run();
  const auto json = nlohmann::json::parse(last_timing(0));
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["kernel"], "vector_add");
  EXPECT_EQ(json["arch"], "gfx950");
  EXPECT_EQ(json["grid"], nlohmann::json({kGroups, 1, 1}));
  EXPECT_EQ(json["block"], nlohmann::json({kBlock, 1, 1}));
  EXPECT_EQ(json["constants_hash"].get<std::string>().size(), 16u);
  EXPECT_EQ(json["matrix_flops"], 0);
  EXPECT_EQ(json["tflops"], 0);
  EXPECT_GT(json["seconds"], 0);
  EXPECT_NEAR(json["clocks"].get<double>(),
              json["seconds"].get<double>() * json["clock_hz"].get<double>(), 1);
  // Two arrays read, one written, 256 bytes a work-group each; reads may come from the MALL.
  EXPECT_GE(json["hbm_bytes"], kCount * 4.0);
  EXPECT_LE(json["hbm_bytes"], kCount * 12.0);
  EXPECT_GE(json["l2_bytes"], kCount * 12.0);
  EXPECT_LE(json["l2_bytes"], kCount * 12.0 + kGroups * 128.0) << "and a line of arguments";
  for (const char *unit : {"mfma", "valu", "transcendental", "salu", "lds", "vmem"}) {
    EXPECT_GE(json["utilisation"][unit], 0) << unit;
    EXPECT_LE(json["utilisation"][unit], 1) << unit;
  }
  EXPECT_EQ(json["occupancy"]["limit"], "grid");
  EXPECT_EQ(json["occupancy"]["groups_per_compute_unit"], (kGroups + 255) / 256);
  double stalls = 0;
  for (const auto &[name, share] : json["stalls"].items()) stalls += share.get<double>();
  EXPECT_GT(stalls, 0.5) << "a short kernel waits for memory";
  EXPECT_LE(stalls, 1);
  for (const char *bytes : {"128", "256"}) EXPECT_GT(json["lds_hypotheses"][bytes]["seconds"], 0);
  EXPECT_FALSE(json.contains("profile"));
}

TEST_F(Timing, ProfileAndTimeline) {
  ASSERT_EQ(set_timing("sample"), 0);
  (void)run();
  auto json = nlohmann::json::parse(last_timing(1));
  const auto profile = json["profile"], timeline = json["timeline"];
  uint64_t issued = 0;
  bool stores = false;
  for (const auto &op : profile) {
    issued += op["issued"].get<uint64_t>();
    stores = stores || op["text"].get<std::string>().find("global_store_dword") == 0;
    EXPECT_TRUE(op["source"].is_string());
    EXPECT_TRUE(op["stalls"].is_object());
  }
  EXPECT_TRUE(stores);
  EXPECT_GT(issued, 40u);
  EXPECT_FALSE(json["timeline_truncated"].get<bool>());
  ASSERT_FALSE(timeline.empty());
  for (const auto &event : timeline) {
    EXPECT_LT(event["op"].get<size_t>(), profile.size());
    EXPECT_LE(event["begin"].get<double>(), event["end"].get<double>());
    EXPECT_LT(event["simd"], 4);
  }
  // The rest is the summary.
  for (const char *key : {"profile", "timeline", "timeline_truncated", "representative"})
    json.erase(key);
  EXPECT_EQ(json, nlohmann::json::parse(last_timing(0)));
}

TEST_F(Timing, TheLastSixteenLaunchesAreKept) {
  setenv("FLYDSL_EMU_TIMING", path_.c_str(), 1);
  const uint64_t before = launch_count();
  for (int i = 0; i < 17; ++i) {
    // Constants that tell the launches apart.
    std::ofstream(path_ + ".constants") << "mall_latency " << 1000 + i << "\n";
    setenv("FLYDSL_EMU_TIMING_CONSTANTS", (path_ + ".constants").c_str(), 1);
    (void)run();
  }
  EXPECT_EQ(launch_count() - before, 17u);
  const std::vector<std::string> all = lines();
  ASSERT_EQ(all.size(), 17u);
  EXPECT_NE(all[15], all[16]);
  for (size_t back = 0; back < 16; ++back) EXPECT_EQ(recent_timing(back), all[16 - back]) << back;
  EXPECT_EQ(recent_timing(16), "");
  EXPECT_NE(reason().find("at most 16 are kept"), std::string::npos) << reason();
  EXPECT_EQ(recent_timing(~uint64_t{0}), "");
  EXPECT_EQ(last_timing(0), all[16]);
  // Another thread has launched nothing.
  std::thread([] {
    EXPECT_EQ(launch_count(), 0u);
    EXPECT_EQ(recent_timing(0), "");
    EXPECT_NE(reason().find("launched nothing"), std::string::npos) << reason();
  }).join();
}

TEST_F(Timing, TheFileGetsALineForEachLaunch) {
  setenv("FLYDSL_EMU_TIMING", path_.c_str(), 1);
  EXPECT_LT(run(), int(kCount));
  setenv("FLYDSL_EMU_TIMING_MODE", "full", 1);
  EXPECT_EQ(run(), int(kCount));
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[1], last_timing(0));
  setenv("FLYDSL_EMU_TIMING_MODE", "off", 1);
  EXPECT_EQ(run(), int(kCount));
  EXPECT_EQ(lines().size(), 2u);
  unsetenv("FLYDSL_EMU_TIMING_MODE");
  ASSERT_EQ(set_timing("off"), 0);
  EXPECT_EQ(run(), int(kCount)) << "the function has the last word";
}

TEST_F(Timing, ConstantsFromAFile) {
  ASSERT_EQ(set_timing("sample"), 0);
  (void)run();
  const auto before = nlohmann::json::parse(last_timing(0));
  std::ofstream(path_ + ".constants") << "mall_latency 20000\n";
  setenv("FLYDSL_EMU_TIMING_CONSTANTS", (path_ + ".constants").c_str(), 1);
  (void)run();
  const auto after = nlohmann::json::parse(last_timing(0));
  EXPECT_GT(after["seconds"].get<double>(), before["seconds"].get<double>() + 5e-6);
  EXPECT_NE(after["constants_hash"], before["constants_hash"]);
}

// Its output and exit status.
std::pair<std::string, int> replay(const std::string &arguments) {
  std::FILE *const pipe =
      popen((std::string(FLYDSL_AOT_TEST_REPLAY) + " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"", -1};
  std::string text;
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  return {text, WEXITSTATUS(pclose(pipe))};
}

TEST_F(Timing, SavedLaunchesAreReplayed) {
  setenv("FLYDSL_EMU_TIMING_SAVE", (path_ + ".save").c_str(), 1);
  EXPECT_LT(run(), int(kCount)) << "asks for the model by itself";
  const std::string file = path_ + ".save", summary = last_timing(0) + "\n";
  EXPECT_EQ(replay(file), std::pair(summary, 0));
  const auto changed = replay("--set mall_latency=20000 " + file);
  EXPECT_GT(nlohmann::json::parse(changed.first)["seconds"].get<double>(),
            nlohmann::json::parse(summary)["seconds"].get<double>() + 5e-6);
  std::ofstream(path_ + ".constants") << "mall_latency 20000\n";
  EXPECT_EQ(replay("--constants " + path_ + ".constants " + file), changed);
  // An array for each line of constants.
  std::ofstream(path_ + ".sets") << "\nmall_latency=20000 lds_latency=64\n";
  const auto fit = replay("--fit " + file + " " + file + " < " + path_ + ".sets");
  const std::string one = summary.substr(0, summary.size() - 1);
  EXPECT_EQ(fit.first.substr(0, fit.first.find('\n')), "[" + one + ", " + one + "]");
  EXPECT_EQ(std::count(fit.first.begin(), fit.first.end(), '\n'), 2);
  for (const char *wrong :
       {"--set lds=1 ", "--set lds_latency=fast ", "--fast ", "--constants /nowhere "})
    EXPECT_EQ(replay(wrong + file).second, 2) << wrong;
  EXPECT_EQ(replay("").second, 2);
  EXPECT_EQ(replay(file + ".none").second, 1);
}

TEST_F(Timing, WrongWordsAreRefused) {
  EXPECT_EQ(set_timing("fast"), 1);
  EXPECT_NE(reason().find("'fast': off, sample and full"), std::string::npos) << reason();

  ASSERT_EQ(set_timing("sample"), 0);
  setenv("FLYDSL_EMU_TIMING_MODE", "some", 1);
  EXPECT_EQ(run(), -1);
  EXPECT_EQ(error_, hipErrorInvalidValue);
  EXPECT_NE(reason().find("FLYDSL_EMU_TIMING_MODE=some"), std::string::npos) << reason();
  unsetenv("FLYDSL_EMU_TIMING_MODE");

  std::ofstream(path_ + ".constants") << "lds_speed 3\n";
  setenv("FLYDSL_EMU_TIMING_CONSTANTS", (path_ + ".constants").c_str(), 1);
  EXPECT_EQ(run(), -1);
  EXPECT_NE(reason().find("'lds_speed' is no constant"), std::string::npos) << reason();
  setenv("FLYDSL_EMU_TIMING_CONSTANTS", (path_ + ".none").c_str(), 1);
  EXPECT_EQ(run(), -1);
  EXPECT_NE(reason().find("No such file"), std::string::npos) << reason();
}

TEST_F(Timing, AFileThatCannotBeWrittenIsRefused) {
  setenv("FLYDSL_EMU_TIMING", "/nowhere/timing", 1);
  EXPECT_EQ(run(), -1);
  EXPECT_NE(reason().find("FLYDSL_EMU_TIMING=/nowhere/timing: No such file"), std::string::npos)
      << reason();
  EXPECT_HIP(hipSuccess, hipDeviceSynchronize());
}

TEST_F(Timing, CooperativeLaunchesAreRefused) {
  ASSERT_EQ(set_timing("sample"), 0);
  TestModule module;
  DeviceArray<uint32_t> out(std::vector<uint32_t>(64, 0));
  void *pointer = out.get();
  void *arguments[] = {&pointer};
  EXPECT_EQ(hipModuleLaunchCooperativeKernel(module.function("at_most_128"), 1u, 1u, 1u, 64u, 1u,
                                             1u, 0u, hipStream_t{}, arguments),
            hipErrorNotSupported);
  EXPECT_NE(reason().find("no cooperative launches"), std::string::npos) << reason();
}

TEST_F(Timing, AFaultIsReportedAsWithoutTheModel) {
  ASSERT_EQ(set_timing("sample"), 0);
  TestModule module;
  DeviceArray<float> out(std::vector<float>(64, 0));
  void *pointer = out.get();
  uint32_t count = 64;
  void *arguments[] = {&pointer, &count};
  ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(module.function("write_past_end"), 2, 1, 1, 64, 1, 1,
                                               0, nullptr, arguments, nullptr));
  EXPECT_EQ(hip().hipDeviceSynchronize(), hipErrorLaunchFailure);
  EXPECT_NE(std::string(hip().flydsl_emu_last_fault()).find("write_past_end: work-group (1,0,0)"),
            std::string::npos)
      << hip().flydsl_emu_last_fault();
  EXPECT_EQ(last_timing(0), "");
  EXPECT_HIP(hipSuccess, hipDeviceReset());
}

}  // namespace
}  // namespace flydsl::emu::test
