// A case of the float64 oracle in device memory, and a client's parameters for it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "test/aotriton/client.h"
#include "test/aotriton/streams.h"
#include "test/support/attention_backward_case.h"
#include "test/support/attention_forward_case.h"
#include "test/support/library.h"
#include "tools/verify/attention_backward_spec.h"
#include "tools/verify/attention_forward_call.h"
#include "tools/verify/attention_forward_spec.h"

namespace flydsl::test {

// (B, S, H, D) memory, as PyTorch has it.
inline const std::string kBshd = " q_place=bshd k_place=bshd v_place=bshd out_place=bshd ";
inline const std::string kBackwardBshd =
    kBshd + "dout_place=bshd dq_place=bshd dk_place=bshd dv_place=bshd ";

struct ForwardClient {
  AttentionCase problem;
  ForwardOnDevice on_device;
  flydsl_aot_attention_forward_params asked{};
  Poisoned<flash::attn_fwd_params> params;
  ClientStream stream;

  ForwardClient(const std::string &line, Way way)
      : ForwardClient(build_attention_case(parse_attention_spec("c " + line)), way) {}
  ForwardClient(const AttentionCase &c, Way way) : problem(c), on_device(emulator(), problem) {
    on_device.set(&asked);
    on_device.prepare(&asked, flydsl_aot_attention_forward_query);
    set_forward(asked, way, &*params);
  }

  hipStream_t hip_stream() const { return static_cast<hipStream_t>(stream.get()); }
  hipError_t call(const flash::attn_options *options = nullptr,
                  int32_t version = flash::attn_fwd_params::kVersion) {
    return flash::attn_fwd(*params, version, hip_stream(), options);
  }
  // Empty if the result is right.
  std::string fault() {
    return judge(problem, on_device.finish(FLYDSL_AOT_OK), reference_of(problem)).fault;
  }
  // After a refusal.
  bool untouched() { return on_device.finish(FLYDSL_AOT_OK).outputs_untouched; }
};

struct BackwardClient {
  PreparedBackward problem;
  BackwardOnDevice on_device;
  flydsl_aot_attention_backward_params asked{};
  LazyContext row_sums, dq_accumulator;
  Poisoned<flash::attn_bwd_params> params;
  ClientStream stream;

  BackwardClient(const std::string &line, Way way)
      : BackwardClient(PreparedBackward("c " + line), way) {}
  BackwardClient(const PreparedBackward &prepared, Way way)
      : problem(prepared),
        on_device(emulator(), problem.problem, problem.forward),
        row_sums(emulator()),
        dq_accumulator(emulator()) {
    on_device.set(&asked);
    on_device.prepare(&asked, flydsl_aot_attention_backward_query);
    set_backward(asked, way, &row_sums, &dq_accumulator, &*params);
  }

  hipStream_t hip_stream() const { return static_cast<hipStream_t>(stream.get()); }
  hipError_t call(const flash::attn_options *options = nullptr,
                  int32_t version = flash::attn_bwd_params::kVersion) {
    return flash::attn_bwd(*params, version, hip_stream(), options);
  }
  std::string fault() {
    const BackwardResult result = on_device.finish(FLYDSL_AOT_OK);
    return judge_backward(problem.problem, result,
                          backward_reference_of(problem.problem, problem.forward))
        .fault;
  }
  bool untouched() { return on_device.finish(FLYDSL_AOT_OK).outputs_untouched; }
};

// Calls, and expects success and a right result.
template <typename Client>
void expect_right(Client *client, const std::string &what) {
  ASSERT_EQ(client->call(), hipSuccess) << what << ": " << flydsl_aot_last_error();
  EXPECT_EQ(client->fault(), "") << what;
}

}  // namespace flydsl::test
