// Gradients are the same bits, however often they are computed, by however many threads and in whatever order of waves and
// work-groups (FLYDSL_EMU_MEMORY=random).
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "test/emulator/hip/hip_library.h"
#include "test/support/attention_backward_case.h"
#include "test/support/library.h"
#include "test/support/setting.h"
#include "tools/verify/attention_backward_call.h"

namespace flydsl::test {
namespace {

struct Problem {
  const char *name, *line;
};

class AttentionBackwardDeterminism : public ::testing::TestWithParam<Problem> {};

TEST_P(AttentionBackwardDeterminism, EveryRunThreadCountAndOrderGivesTheSameBits) {
  const PreparedBackward p(std::string("case ") + GetParam().line);
  const BackwardResult first = check_backward(p);
  const auto expect_the_same = [&](const std::string &what) {
    const BackwardResult again = run_backward(p);
    ASSERT_EQ(again.status, FLYDSL_AOT_OK) << what << ": " << again.message;
    EXPECT_EQ(again.kernels, first.kernels);
    EXPECT_EQ(again.stray_write, "") << what;
    EXPECT_TRUE(same_bits(again, first)) << what;
  };
  for (int run = 2; run <= 4; ++run) expect_the_same("run " + std::to_string(run));
  for (const char *threads : {"1", "2", "5"}) {
    const Setting setting("FLYDSL_EMU_THREADS", threads);
    expect_the_same(std::string(threads) + " threads");
  }
  for (const char *memory : {"strict", "random:1", "random:2", "random:3", "random:4"}) {
    const Setting setting("FLYDSL_EMU_MEMORY", memory);
    expect_the_same(memory);
    const Setting one("FLYDSL_EMU_THREADS", "1");
    expect_the_same(std::string(memory) + ", one thread");
  }
}

// Dao-AILab/flash-attention#2244, beside a second stream that is busy all the time, on kernels of the same and of other instances.
TEST_P(AttentionBackwardDeterminism, BesideABusyStreamTheBitsAreTheSame) {
  const PreparedBackward p(std::string("case ") + GetParam().line),
      other("case hq=2 hkv=1 sq=100 sk=300 d=128");
  const BackwardResult first = run_backward(p);
  std::atomic<bool> done{false};
  std::atomic<int> calls{0};
  std::thread busy([&] {
    BackwardOnDevice on_device(emulator(), other.problem, other.forward);
    flydsl_aot_attention_backward_params params{};
    on_device.set(&params);
    on_device.prepare(&params, flydsl_aot_attention_backward_query);
    hipStream_t stream = nullptr;
    EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    while (!done) {
      EXPECT_EQ(flydsl_aot_attention_backward(emulator(), &params, stream), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
      ++calls;
    }
    EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
  });
  for (int run = 0; run < 3; ++run) {
    const int before = calls;
    while (calls == before) std::this_thread::yield();
    EXPECT_TRUE(same_bits(run_backward(p), first)) << "run " << run;
  }
  done = true;
  busy.join();
}

INSTANTIATE_TEST_SUITE_P(
    Of, AttentionBackwardDeterminism,
    ::testing::Values(
        // Dao-AILab/flash-attention#2244, #746, #429: atomic additions in another order.
        Problem{"flash_attention_2244_causal", "b=2 hq=2 hkv=2 sq=600 d=128 mask=causal:top-left"},
        Problem{"flash_attention_2244_gqa", "hq=8 hkv=1 sq=200 d=256 mask=causal:bottom-right"},
        Problem{"full", "dtype=fp16 hq=2 hkv=2 sq=600 d=128"},
        Problem{"d64_window", "hq=4 hkv=2 sq=300 d=64 mask=100,20:bottom-right"},
        Problem{"d192_128", "dtype=fp16 hq=4 hkv=2 sq=200 sk=300 d=192 dv=128"},
        Problem{"packed",
                "b=4 hq=4 hkv=2 sq=300 d=128 q_lengths=packed:300,0,33,129 "
                "k_lengths=packed:300,70,0,129 mask=causal:bottom-right"},
        Problem{"every_feature",
                "b=2 hq=4 hkv=2 sq=150 sk=200 bias=fp32 bias_zero=bq dbias=fp32 sinks=normal "
                "dsinks=yes dropout=0.2 softcap=20 alibi=h visible=random"},
        Problem{"nan", "hq=2 hkv=1 sq=150 d=128 mask=causal:top-left nan_k=1 nan_dout=1"}),
    [](const auto &info) { return std::string(info.param.name); });

}  // namespace
}  // namespace flydsl::test
