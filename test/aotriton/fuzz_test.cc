// Random problems over the cross product of what both interfaces have: libaotriton_v2.so must give the bits that the C ABI gives.
#include "test/aotriton/calls.h"
#include "tools/verify/attention_backward_fuzz.h"
#include "tools/verify/attention_forward_fuzz.h"

namespace flydsl::test {
namespace {

constexpr int kProblems = 25;

bool has_lengths(const AttentionCase &c) {
  return c.lengths_q_as != Lengths::kDense || c.lengths_k_as != Lengths::kDense;
}

// Whether AOTriton's parameters can say it.
bool can_be_said(const AttentionCase &c) {
  if (c.q_dtype != FLYDSL_AOT_DTYPE_INVALID || c.kv_dtype != FLYDSL_AOT_DTYPE_INVALID) return false;
  if (c.softcap > 0 || !c.visible.empty() || !c.sinks.empty() || c.want_kept) return false;
  if (c.lengths_k_as == Lengths::kPaged) return false;
  const bool left = c.mask.left != FLYDSL_AOT_UNLIMITED, right = c.mask.right != FLYDSL_AOT_UNLIMITED;
  // From the bottom-right diagonal of each sequence only the right bound 0 counts.
  if (has_lengths(c) && (left || right) && c.mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT &&
      c.mask.right != 0)
    return false;
  // Slopes count from the bottom-right diagonal, numbers of windows from the other.
  if (!c.alibi_slopes.empty() && (left || right) && (has_lengths(c) || c.seq_q != c.seq_k)) return false;
  const bool packed = c.lengths_q_as == Lengths::kPacked && c.lengths_k_as == Lengths::kPacked;
  return kHasVarlenBits || !has_lengths(c) || packed;
}

// Batches and heads are one axis of L, and padded LSE of packed queries is none of AOTriton's.
bool lse_can_be_said(const AttentionCase &c, const flydsl_aot_tensor &lse) {
  const bool packed = c.lengths_q_as == Lengths::kPacked || c.lengths_q_as == Lengths::kPackedUsed;
  if (packed && lse.rank == 3) return false;
  return lse.rank != 3 || lse.sizes[0] == 1 || lse.strides[0] == lse.sizes[1] * lse.strides[1];
}

template <typename Params>
void say_windows(const AttentionCase &c, Params *params) {
  const bool left = c.mask.left != FLYDSL_AOT_UNLIMITED, right = c.mask.right != FLYDSL_AOT_UNLIMITED;
  if (!left && !right) return;
  const bool bottom_right = c.mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT;
  using flash::WindowValue;
  params->causal_type = flash::CausalType::WindowedAttention;
  params->window_left = left ? static_cast<int32_t>(c.mask.left) : WindowValue::TopLeftAligned;
  params->window_right = right ? static_cast<int32_t>(c.mask.right) : 1 << 30;
  if (!bottom_right) return;
  const auto shift = static_cast<int32_t>(c.seq_k - c.seq_q);
  if (has_lengths(c)) {
    params->window_right = WindowValue::BottomRightAligned;
  } else {
    if (left) params->window_left -= shift;
    if (right) params->window_right += shift;
  }
}

#if AOTRITON_VERSION_MINOR >= 14
flash::VarlenMode mode_of(const flydsl_aot_tensor &starts, const flydsl_aot_tensor &used,
                          TensorView<1> *lengths, TensorView<1> *positions) {
  flash::VarlenMode mode{};
  *lengths = *positions = {};
  if (starts.rank) {
    mode.stacked = flash::VarlenStacked::THD;
    mode.length = flash::VarlenLength::CUMULATIVE;
    mode.position = flash::VarlenPosition::REUSE;
    *lengths = view_of<1>(starts);
  }
  if (used.rank) {
    mode.length = flash::VarlenLength::INDIVIDUAL;
    *lengths = view_of<1>(used);
    if (starts.rank) {
      mode.position = flash::VarlenPosition::ARRAY;
      *positions = view_of<1>(starts);
    }
  }
  return mode;
}
#endif

const flydsl_aot_tensor &asked_slopes(const ForwardClient &client) {
  return client.asked.alibi_slopes;
}

template <typename Client>
void say_all(const AttentionCase &c, Client *client) {
  auto &params = *client->params;
  say_windows(c, &params);
#if AOTRITON_VERSION_MINOR >= 14
  const auto &asked = client->asked;
  params.varlen_bits.qmode =
      mode_of(asked.cu_seqlens_q, asked.seqused_q, &params.seqinfo_q0, &params.seqinfo_q1);
  params.varlen_bits.kmode =
      mode_of(asked.cu_seqlens_k, asked.seqused_k, &params.seqinfo_k0, &params.seqinfo_k1);
  params.Max_seqlen_q = static_cast<int32_t>(c.seq_q);
  params.Max_seqlen_k = static_cast<int32_t>(c.seq_k);
#endif
  if constexpr (requires { params.A; }) {
    if (asked_slopes(*client).rank) params.A = view_of<2>(asked_slopes(*client));
  }
}

TEST(Fuzz, Forward) {
  int called = 0;
  for (uint64_t seed = 1; called < kProblems; ++seed) {
    const std::string line = fuzz_attention_forward_line(seed);
    AttentionCase c = build_attention_case(parse_attention_spec(line));
    if (!can_be_said(c)) continue;
    c.random_on_device = c.dropout_p > 0;
    ForwardClient client(c, Way::kEfficient);
    if (!lse_can_be_said(c, client.asked.lse)) continue;
    ++called;
    say_all(c, &client);
    ASSERT_EQ(client.call(), hipSuccess) << line << ": " << flydsl_aot_last_error();
    const AttentionResult result = client.on_device.finish(FLYDSL_AOT_OK);
    EXPECT_EQ(result.stray_write, "") << line;
    EXPECT_TRUE(same_bits(result, call_attention_forward(emulator(), c))) << line;
  }
}

TEST(Fuzz, Backward) {
  int called = 0;
  for (uint64_t seed = 1; called < kProblems; ++seed) {
    const std::string line = fuzz_attention_backward_line(seed);
    BackwardCase problem = build_backward_case(parse_backward_spec(line));
    const AttentionCase &c = problem.forward;
    if (!can_be_said(c) || !c.alibi_slopes.empty()) continue;
    if (!problem.wanted[kDq] || !problem.wanted[kDk] || !problem.wanted[kDv]) continue;
    problem.forward.random_on_device = c.dropout_p > 0;
    const PreparedBackward prepared(problem);
    BackwardClient client(prepared, Way::kEfficient);
    if (!lse_can_be_said(c, client.asked.lse)) continue;
    ++called;
    say_all(c, &client);
    ASSERT_EQ(client.call(), hipSuccess) << line << ": " << flydsl_aot_last_error();
    const BackwardResult result = client.on_device.finish(FLYDSL_AOT_OK);
    EXPECT_EQ(result.stray_write, "") << line;
    EXPECT_EQ(result.bits, run_backward(prepared).bits) << line;
  }
}

}  // namespace
}  // namespace flydsl::test
