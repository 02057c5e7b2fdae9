// attn_bwd as PyTorch calls it, against the float64 oracle.
#include <gtest/gtest.h>

#include "test/aotriton/client.h"
#include "test/aotriton/streams.h"
#include "test/support/attention_backward_case.h"
#include "test/support/library.h"
#include "tools/verify/attention_backward_spec.h"

namespace flydsl::test {
namespace {

constexpr int32_t kVersion = flash::attn_bwd_params::kVersion;

// A case in device memory, and the parameters of a client for it.
struct Client {
  PreparedBackward problem;
  BackwardOnDevice on_device;
  flydsl_aot_attention_backward_params asked{};
  LazyContext row_sums, dq_accumulator;
  Poisoned<flash::attn_bwd_params> params;
  ClientStream stream;

  Client(const std::string &line, Way way)
      : problem("c " + line),
        on_device(emulator(), problem.problem, problem.forward),
        row_sums(emulator()),
        dq_accumulator(emulator()) {
    on_device.set(&asked);
    on_device.prepare(&asked, flydsl_aot_attention_backward_query);
    set_backward(asked, way, &row_sums, &dq_accumulator, &*params);
  }

  hipStream_t hip_stream() const { return static_cast<hipStream_t>(stream.get()); }
  hipError_t call(const flash::attn_options *options = nullptr) {
    return flash::attn_bwd(*params, kVersion, hip_stream(), options);
  }
  std::string fault() {
    const BackwardResult result = on_device.finish(FLYDSL_AOT_OK);
    return judge_backward(problem.problem, result,
                          backward_reference_of(problem.problem, problem.forward))
        .fault;
  }
};

void expect_right(const std::string &line, Way way) {
  Client client(line, way);
  ASSERT_EQ(client.call(), hipSuccess) << line << ": " << flydsl_aot_last_error();
  EXPECT_EQ(client.fault(), "") << line;
  EXPECT_LE(client.dq_accumulator.acquired, 1) << line;
  EXPECT_EQ(client.dq_accumulator.disposed, 1) << line;
  EXPECT_EQ(client.row_sums.disposed, 1) << line;
}

const std::string kBshd =
    " q_place=bshd k_place=bshd v_place=bshd out_place=bshd dout_place=bshd dq_place=bshd "
    "dk_place=bshd dv_place=bshd ";

TEST(Backward, FlashDense) {
  expect_right("b=2 hq=4 hkv=2 sq=150 sk=200 d=128" + kBshd, Way::kFlash);
  expect_right("dtype=fp16 b=1 hq=2 hkv=2 sq=70 d=72" + kBshd, Way::kFlash);
  expect_right("b=2 hq=2 hkv=1 sq=130 d=64 mask=causal:bottom-right" + kBshd, Way::kFlash);
  expect_right("b=1 hq=2 hkv=1 sq=200 d=128 mask=30,0:top-left" + kBshd, Way::kFlash);
  expect_right("b=1 hq=1 sq=1 sk=70 d=64" + kBshd, Way::kFlash);
}

TEST(Backward, FlashDropout) {
  expect_right("b=2 hq=2 hkv=1 sq=70 d=64 dropout=0.3 dropout_from=device dropout_seed=5 "
               "dropout_offset=77" + kBshd,
               Way::kFlash);
}

TEST(Backward, FlashPacked) {
  const std::string shape = "b=3 hq=4 hkv=2 d=64 sq=80 sk=120 q_lengths=packed:80,1,33 ";
  expect_right(shape + "k_lengths=packed:120,40,7", Way::kFlash);
  expect_right(shape + "k_lengths=packed:120,40,7 mask=causal:bottom-right", Way::kFlash);
  expect_right(shape + "k_lengths=packed:120,40,7 lse_rows=padded", Way::kFlash);
}

TEST(Backward, Efficient) {
  expect_right("b=2 hq=2 hkv=2 sq=70 sk=90 d=64" + kBshd, Way::kEfficient);
  expect_right("b=2 hq=2 hkv=2 sq=70 sk=90 d=64 mask=causal:top-left" + kBshd, Way::kEfficient);
  expect_right("b=2 hq=2 hkv=2 sq=90 sk=70 d=64 dv=32 mask=causal:bottom-right" + kBshd,
               Way::kEfficient);
  expect_right("b=2 hq=3 hkv=3 sq=70 sk=90 d=64 bias=same bias_zero=bh" + kBshd, Way::kEfficient);
  expect_right("dtype=fp16 b=2 hq=2 hkv=2 sq=70 sk=90 d=40 bias=same dbias=same dbias_place=pitch:96" +
                   kBshd,
               Way::kEfficient);
}

// That of the kernels that compute all gradients together is more than it has.
TEST(Backward, WorkspaceIsTheCallersWhereItIsEnough) {
  Client separate("b=1 hq=2 hkv=2 sq=256 d=64 dropout=0.3 dropout_from=device" + kBshd, Way::kFlash);
  ASSERT_EQ(separate.call(), hipSuccess) << flydsl_aot_last_error();
  EXPECT_EQ(separate.fault(), "");
  EXPECT_EQ(separate.dq_accumulator.acquired, 1);
  EXPECT_EQ(separate.row_sums.acquired, 0);

  Client together("b=1 hq=2 hkv=2 sq=256 d=64" + kBshd, Way::kFlash);
  ASSERT_GT(together.asked.workspace_bytes, uint64_t{2 * 256 * 64 * 4})
      << "the problem is for one kernel that computes all gradients";
  ASSERT_EQ(together.call(), hipSuccess) << flydsl_aot_last_error();
  EXPECT_EQ(together.fault(), "");
  EXPECT_EQ(together.dq_accumulator.acquired, 0);
  EXPECT_EQ(together.dq_accumulator.disposed, 1);
}

// Within a capture nothing is allocated; seed and offset are those that the forward call's outputs hold.
TEST(Backward, Capture) {
  for (const std::string &line :
       {"b=1 hq=2 hkv=2 sq=256 d=64" + kBshd,
        "b=2 hq=2 hkv=2 sq=70 d=64 mask=causal:top-left dropout=0.3 dropout_from=device" + kBshd}) {
    Client client(line, Way::kEfficient);
    ASSERT_EQ(client.call(), hipSuccess) << line << ": " << flydsl_aot_last_error();
    EXPECT_EQ(client.fault(), "") << line;
    Client captured(line, Way::kEfficient);
    EXPECT_EQ(captured.stream.capture(
                  [&] {
                    EXPECT_EQ(captured.call(), hipSuccess) << line << ": " << flydsl_aot_last_error();
                  },
                  2),
              3U)
        << line;
    EXPECT_EQ(captured.dq_accumulator.acquired, 1) << line;
    EXPECT_EQ(captured.fault(), "") << line;
  }
}

}  // namespace
}  // namespace flydsl::test
