// attn_bwd as PyTorch calls it, against the float64 oracle.
#include "test/aotriton/calls.h"

namespace flydsl::test {
namespace {

void expect_right(const std::string &line, Way way) {
  BackwardClient client(line, way);
  expect_right(&client, line);
  EXPECT_LE(client.dq_accumulator.acquired, 1) << line;
  EXPECT_EQ(client.dq_accumulator.disposed, 1) << line;
  EXPECT_EQ(client.row_sums.disposed, 1) << line;
}

TEST(Backward, FlashDense) {
  expect_right("b=2 hq=4 hkv=2 sq=150 sk=200 d=128" + kBackwardBshd, Way::kFlash);
  expect_right("dtype=fp16 b=1 hq=2 hkv=2 sq=70 d=72" + kBackwardBshd, Way::kFlash);
  expect_right("b=2 hq=2 hkv=1 sq=130 d=64 mask=causal:bottom-right" + kBackwardBshd, Way::kFlash);
  expect_right("b=1 hq=2 hkv=1 sq=200 d=128 mask=30,0:top-left" + kBackwardBshd, Way::kFlash);
  expect_right("b=1 hq=1 sq=1 sk=70 d=64" + kBackwardBshd, Way::kFlash);
}

TEST(Backward, FlashDropout) {
  expect_right("b=2 hq=2 hkv=1 sq=70 d=64 dropout=0.3 dropout_from=device dropout_seed=5 "
               "dropout_offset=77" + kBackwardBshd,
               Way::kFlash);
}

TEST(Backward, FlashPacked) {
  const std::string shape = "b=3 hq=4 hkv=2 d=64 sq=80 sk=120 q_lengths=packed:80,1,33 ";
  expect_right(shape + "k_lengths=packed:120,40,7", Way::kFlash);
  expect_right(shape + "k_lengths=packed:120,40,7 mask=causal:bottom-right", Way::kFlash);
}

TEST(Backward, Efficient) {
  expect_right("b=2 hq=2 hkv=2 sq=70 sk=90 d=64" + kBackwardBshd, Way::kEfficient);
  expect_right("b=2 hq=2 hkv=2 sq=70 sk=90 d=64 mask=causal:top-left" + kBackwardBshd, Way::kEfficient);
  expect_right("b=2 hq=2 hkv=2 sq=90 sk=70 d=64 dv=32 mask=causal:bottom-right" + kBackwardBshd,
               Way::kEfficient);
  expect_right("b=2 hq=3 hkv=3 sq=70 sk=90 d=64 bias=same bias_zero=bh" + kBackwardBshd, Way::kEfficient);
  expect_right("dtype=fp16 b=2 hq=2 hkv=2 sq=70 sk=90 d=40 bias=same dbias=same dbias_place=pitch:96" +
                   kBackwardBshd,
               Way::kEfficient);
}

// That of the kernels that compute all gradients together is more than it has.
TEST(Backward, WorkspaceIsTheCallersWhereItIsEnough) {
  BackwardClient separate("b=1 hq=2 hkv=2 sq=256 d=64 dropout=0.3 dropout_from=device" + kBackwardBshd, Way::kFlash);
  ASSERT_EQ(separate.call(), hipSuccess) << flydsl_aot_last_error();
  EXPECT_EQ(separate.fault(), "");
  EXPECT_EQ(separate.dq_accumulator.acquired, 1);
  EXPECT_EQ(separate.row_sums.acquired, 0);

  BackwardClient together("b=1 hq=2 hkv=2 sq=256 d=64" + kBackwardBshd, Way::kFlash);
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
       {"b=1 hq=2 hkv=2 sq=256 d=64" + kBackwardBshd,
        "b=2 hq=2 hkv=2 sq=70 d=64 mask=causal:top-left dropout=0.3 dropout_from=device" + kBackwardBshd}) {
    BackwardClient client(line, Way::kEfficient);
    ASSERT_EQ(client.call(), hipSuccess) << line << ": " << flydsl_aot_last_error();
    EXPECT_EQ(client.fault(), "") << line;
    BackwardClient captured(line, Way::kEfficient);
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

// Moves the bytes of a tensor to where another of the same strides lies.
void copy(const flydsl_aot_tensor &from, const flydsl_aot_tensor &to) {
  size_t last = 0;
  for (int axis = 0; axis < from.rank; ++axis)
    last += static_cast<size_t>((from.sizes[axis] - 1) * from.strides[axis]);
  std::vector<unsigned char> bytes((last + 1) * (from.dtype == FLYDSL_AOT_FP32 ? 4 : 2));
  ASSERT_EQ(flydsl_aot_device_download(emulator(), bytes.data(), from.data, bytes.size()), FLYDSL_AOT_OK);
  ASSERT_EQ(flydsl_aot_device_upload(emulator(), to.data, bytes.data(), bytes.size()), FLYDSL_AOT_OK);
}

// Each replay reads what is there then, and counts on nothing that an earlier one left in DQ_ACC or the outputs.
TEST(Backward, ReplaysAreOfTheirOwnInputs) {
  const std::string shape = "b=1 hq=2 hkv=2 sq=256 d=64" + kBackwardBshd;
  BackwardClient first("seed=1 " + shape, Way::kFlash), second("seed=2 " + shape, Way::kFlash);
  ASSERT_EQ(first.call(), hipSuccess) << flydsl_aot_last_error();  // loads kernels
  second.stream.capture([&] { ASSERT_EQ(second.call(), hipSuccess) << flydsl_aot_last_error(); }, 1);
  ASSERT_EQ(second.fault(), "");
  BackwardClient captured("seed=1 " + shape, Way::kFlash);
  const auto swap_inputs = [&](int time) {
    const std::vector<unsigned char> nan(2 * 256 * 64 * sizeof(float), 0xFF);
    ASSERT_EQ(flydsl_aot_device_upload(emulator(), captured.dq_accumulator.memory, nan.data(), nan.size()), FLYDSL_AOT_OK);
    if (time == 0) return;
    for (const auto tensor : {&flydsl_aot_attention_backward_params::q, &flydsl_aot_attention_backward_params::k,
                              &flydsl_aot_attention_backward_params::v, &flydsl_aot_attention_backward_params::out,
                              &flydsl_aot_attention_backward_params::lse, &flydsl_aot_attention_backward_params::dout})
      copy(second.asked.*tensor, captured.asked.*tensor);
  };
  captured.stream.capture([&] { ASSERT_EQ(captured.call(), hipSuccess) << flydsl_aot_last_error(); }, 2, swap_inputs);
  EXPECT_TRUE(same_bits(captured.on_device.finish(FLYDSL_AOT_OK), second.on_device.finish(FLYDSL_AOT_OK)));
}

// A caller that offers more memory than DQ has gets the fastest kernels within a capture too: the bits of the call outside.
TEST(Backward, CaptureWithALargerWorkspace) {
  const std::string line = "b=1 hq=2 hkv=2 sq=256 d=64" + kBackwardBshd;
  BackwardClient outside(line, Way::kFlash), captured(line, Way::kFlash);
  ASSERT_EQ(outside.call(), hipSuccess) << flydsl_aot_last_error();
  ASSERT_EQ(outside.fault(), "");
  LazyContext larger(emulator());
  larger.reserve({1, 1, 1, (captured.asked.workspace_bytes + 3) / 4});
  auto &lazy = captured.params->DQ_ACC;
  lazy.eager = TensorView<4>(reinterpret_cast<intptr_t>(larger.memory), {1, 1, 1, larger.sizes[3]},
                             {larger.sizes[3], larger.sizes[3], larger.sizes[3], 1}, aotriton::kFloat32);
  const size_t nodes = captured.stream.capture(
      [&] { ASSERT_EQ(captured.call(), hipSuccess) << flydsl_aot_last_error(); }, 2);
  EXPECT_EQ(nodes, 3U) << "prepare, fused, convert: nothing is allocated";
  EXPECT_EQ(captured.dq_accumulator.acquired, 0);
  EXPECT_EQ(captured.fault(), "");
  EXPECT_TRUE(same_bits(captured.on_device.finish(FLYDSL_AOT_OK), outside.on_device.finish(FLYDSL_AOT_OK)));
}

}  // namespace
}  // namespace flydsl::test
