// Calls of the attention operators captured into graphs, and replayed with other numbers in the same memory: a
// replay must give the bits of a call, whatever data, lengths, block numbers and seeds were at the capture. (Public
// reports: pytorch#180232, rocBLAS#1432, hip#3876, a first call within a capture.)
#include <gtest/gtest.h>

#include "test/support/attention_backward_case.h"
#include "test/support/attention_forward_case.h"
#include "test/support/client_stream.h"
#include "test/support/library.h"
#include "tools/verify/attention_decode_call.h"
#include "tools/verify/attention_forward_call.h"
#include "tools/verify/attention_forward_spec.h"

namespace flydsl::test {
namespace {

// What the operators of the forward pass have in common.
template <typename Device>
struct ForwardPass {
  using OnDevice = Device;
  using Problem = AttentionCase;
  static Problem read(const std::string &line) {
    return build_attention_case(parse_attention_spec(line));
  }
  static std::unique_ptr<OnDevice> place(flydsl_aot_handle *handle, const Problem &c) {
    return std::make_unique<OnDevice>(handle, c);
  }
  static void refill(OnDevice &on_device, const Problem &c) { on_device.refill(c); }
  static std::string fault(const Problem &c, const AttentionResult &result) {
    return judge(c, result, reference_of(c)).fault;
  }
};

struct Forward : ForwardPass<ForwardOnDevice> {
  using Params = flydsl_aot_attention_forward_params;
  static constexpr size_t kLaunches = 1;
  static constexpr auto query = flydsl_aot_attention_forward_query;
  static constexpr auto prefetch = flydsl_aot_attention_forward_prefetch;
  static constexpr auto call = flydsl_aot_attention_forward;
  static constexpr auto eager = call_attention_forward;
};

struct Decode : ForwardPass<DeviceCase> {
  using Params = flydsl_aot_attention_decode_params;
  static constexpr size_t kLaunches = 2;
  static constexpr auto query = flydsl_aot_attention_decode_query;
  static constexpr auto prefetch = flydsl_aot_attention_decode_prefetch;
  static constexpr auto call = flydsl_aot_attention_decode;
  static constexpr auto eager = call_attention_decode;
};

// `launches`: three that form the gradients of q, k and v, one each for those of bias and sinks.
template <size_t launches>
struct Backward {
  using OnDevice = BackwardOnDevice;
  using Problem = PreparedBackward;
  using Params = flydsl_aot_attention_backward_params;
  static constexpr size_t kLaunches = launches;
  static constexpr auto query = flydsl_aot_attention_backward_query;
  static constexpr auto prefetch = flydsl_aot_attention_backward_prefetch;
  static constexpr auto call = flydsl_aot_attention_backward;
  static Problem read(const std::string &line) { return PreparedBackward(line); }
  static std::unique_ptr<OnDevice> place(flydsl_aot_handle *handle, const Problem &p) {
    return std::make_unique<OnDevice>(handle, p.problem, p.forward);
  }
  static void refill(OnDevice &on_device, const Problem &p) {
    on_device.refill(p.problem, p.forward);
  }
  static std::string fault(const Problem &p, const BackwardResult &result) {
    return judge_backward(p.problem, result, backward_reference_of(p.problem, p.forward)).fault;
  }
  static BackwardResult eager(flydsl_aot_handle *handle, const Problem &p) {
    return call_attention_backward(handle, p.problem, p.forward);
  }
};

// Captures the call on the first case's memory, then replays it with the numbers of each.
template <typename Operator>
void capture_and_replay(const std::vector<std::string> &lines, hipStreamCaptureMode mode) {
  // A handle of its own: nothing is loaded before the capture but what prefetch loads.
  const std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)> handle(open_emulator(),
                                                                               flydsl_aot_close);
  std::vector<typename Operator::Problem> cases;
  for (const std::string &line : lines) cases.push_back(Operator::read(line));
  const auto memory = Operator::place(handle.get(), cases[0]);
  auto &on_device = *memory;
  typename Operator::Params params{};
  on_device.set(&params);
  on_device.prepare(&params, +Operator::query);
  const Stream stream;
  size_t nodes = 0;

  // The first use of a kernel within a capture: refused, and the capture goes on.
  hipGraphExec_t empty = captured(
      stream, mode,
      [&] {
        EXPECT_EQ(Operator::call(handle.get(), &params, stream), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
      },
      &nodes);
  EXPECT_EQ(nodes, 0u);
  EXPECT_EQ(api::hipGraphExecDestroy(empty), hipSuccess);

  ASSERT_EQ(Operator::prefetch(handle.get(), &params), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  hipGraphExec_t graph = captured(
      stream, mode,
      [&] {
        EXPECT_EQ(Operator::call(handle.get(), &params, stream), FLYDSL_AOT_OK)
            << flydsl_aot_last_error();
      },
      &nodes);
  EXPECT_EQ(nodes, Operator::kLaunches);
  ASSERT_EQ(flydsl_aot_device_synchronize(handle.get()), FLYDSL_AOT_OK);
  EXPECT_TRUE(on_device.finish(FLYDSL_AOT_OK).outputs_untouched) << "a capture runs nothing";

  for (size_t n = 0; n < cases.size(); ++n) {
    Operator::refill(on_device, cases[n]);
    ASSERT_EQ(api::hipGraphLaunch(graph, static_cast<hipStream_t>(stream)), hipSuccess);
    const auto replayed = on_device.finish(FLYDSL_AOT_OK);
    EXPECT_EQ(Operator::fault(cases[n], replayed), "") << lines[n];
    EXPECT_TRUE(same_bits(replayed, Operator::eager(emulator(), cases[n]))) << lines[n];
  }
  EXPECT_EQ(api::hipGraphExecDestroy(graph), hipSuccess);
}

class AttentionGraph : public ::testing::TestWithParam<hipStreamCaptureMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, AttentionGraph,
                         ::testing::Values(hipStreamCaptureModeGlobal,
                                           hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeRelaxed),
                         [](const auto &info) {
                           return std::string(info.param == hipStreamCaptureModeGlobal ? "Global"
                                              : info.param == hipStreamCaptureModeRelaxed
                                                  ? "Relaxed"
                                                  : "ThreadLocal");
                         });

TEST_P(AttentionGraph, Forward) {
  const std::string shape = "c hq=4 hkv=2 sq=150 sk=200 d=128 mask=causal:bottom-right seed=";
  capture_and_replay<Forward>({shape + "1", shape + "2 nan_v=1", shape + "3 q=normal*20"},
                              GetParam());
}

// Lengths, block numbers, seed and offset in device memory are those of the replay.
TEST_P(AttentionGraph, ForwardOfPagedSequencesWithDropout) {
  const std::string shape =
      "c dtype=fp16 b=3 hq=4 hkv=2 sq=40 sk=64 block=16 mask=causal:bottom-right sinks=normal "
      "bias=fp32 dropout=0.3 dropout_from=device ";
  capture_and_replay<Forward>(
      {shape + "q_lengths=packed:1,40,7 k_lengths=paged:64,33,20 dropout_seed=1 seed=1",
       shape + "q_lengths=packed:40,1,7 k_lengths=paged:20,64,33 dropout_seed=2 seed=2",
       shape + "q_lengths=packed:7,1,40 k_lengths=paged:33,20,64 dropout_offset=9 seed=3"},
      GetParam());
}

TEST_P(AttentionGraph, Decode) {
  const std::string shape = "c hq=8 hkv=2 sq=2 sk=700 d=128 mask=causal:bottom-right seed=";
  capture_and_replay<Decode>({shape + "1", shape + "2 nan_v=1", shape + "3 q=normal*20"},
                             GetParam());
}

// The plan is made from the lengths of the replay.
TEST_P(AttentionGraph, DecodeOfPagedSequences) {
  const std::string shape =
      "c dtype=fp16 b=4 hq=8 hkv=1 sq=1 sk=1000 d=64 block=32 mask=200,0:bottom-right alibi=h ";
  capture_and_replay<Decode>({shape + "k_lengths=paged:1000,0,33,200 seed=1",
                              shape + "k_lengths=paged:0,200,1000,33 seed=2",
                              shape + "k_lengths=paged:33,1000,200,0 seed=3"},
                             GetParam());
  const std::string float8 =
      "c b=3 hq=8 hkv=2 sk=300 d=128 kv_dtype=e4m3 k_descale=h v_descale=bh block=16 ";
  capture_and_replay<Decode>(
      {float8 + "k_lengths=paged:300,0,160 seed=1", float8 + "k_lengths=paged:160,300,0 seed=2"},
      GetParam());
  const std::string latent = "c b=2 hq=16 hkv=1 sk=200 d=576 dv=512 v=k block=64 ";
  capture_and_replay<Decode>(
      {latent + "k_lengths=paged:200,65 seed=1", latent + "k_lengths=paged:65,200 seed=2"},
      GetParam());
  capture_and_replay<Decode>({"c b=3 hq=4 sk=300 k_lengths=used:300,300,300 seed=1",
                              "c b=3 hq=4 sk=300 k_lengths=used:0,1,299 seed=2",
                              "c b=3 hq=4 sk=300 k_lengths=used:0,0,0 seed=3"},
                             GetParam());
}

TEST_P(AttentionGraph, Backward) {
  const std::string shape = "c hq=4 hkv=2 sq=150 sk=200 d=128 mask=causal:bottom-right seed=";
  capture_and_replay<Backward<3>>({shape + "1", shape + "2 nan_dout=1", shape + "3 q=normal*5"},
                                  GetParam());
}

// Lengths, seed and offset in device memory are those of the replay.
TEST_P(AttentionGraph, BackwardOfPackedSequencesWithDropout) {
  const std::string shape =
      "c dtype=fp16 b=3 hq=4 hkv=2 sq=40 sk=64 mask=causal:bottom-right sinks=normal dsinks=yes "
      "bias=fp32 bias_zero=b dbias=fp32 dropout=0.3 dropout_from=device ";
  capture_and_replay<Backward<5>>(
      {shape + "q_lengths=packed:1,40,7 k_lengths=packed:64,33,20 dropout_seed=1 seed=1",
       shape + "q_lengths=packed:40,1,7 k_lengths=packed:20,64,33 dropout_seed=2 seed=2",
       shape + "q_lengths=packed:7,1,40 k_lengths=packed:33,20,64 dropout_offset=9 seed=3"},
      GetParam());
}

}  // namespace
}  // namespace flydsl::test
