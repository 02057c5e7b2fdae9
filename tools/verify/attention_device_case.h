// A case in device memory: what the attention operators' parameters have in common, and whether a call left alone
// what it must.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/verify/attention_forward_call.h"

namespace flydsl::verify {

// The queries' or the keys' side of a case: its sequences, and where they are.
struct Side {
  int64_t batches, positions;
  bool packed, used, paged;
  const std::vector<int64_t> &lengths;
  Packing packing;
  Paging paging;

  Side(const AttentionCase &c, const std::vector<int64_t> &lengths, Lengths as, int64_t positions);

  std::vector<int64_t> sizes(int64_t heads, int64_t channels) const;
  template <typename Element>
  std::vector<Element> placed(const std::vector<Element> &dense, int64_t heads, int64_t channels,
                              Element filler) const {
    if (paged) return page(paging, lengths, dense, heads, positions, channels, filler);
    return packed ? pack(packing, dense, heads, positions, channels, filler) : dense;
  }
};

// Numbers in device memory.
template <typename Number>
struct Numbers {
  DeviceTensor tensor;
  Numbers(flydsl_aot_handle *handle, flydsl_aot_dtype dtype, const std::vector<Number> &values)
      : Numbers(handle, dtype, {static_cast<int64_t>(values.size())}, {}, values) {}
  Numbers(flydsl_aot_handle *handle, flydsl_aot_dtype dtype, const std::vector<int64_t> &sizes,
          const Placement &placement, const std::vector<Number> &values)
      : tensor(handle, dtype, sizes, placement, 0xffffffff) {
    if (!values.empty()) tensor.set(values);
  }
  // Of these numbers, and absent if there are none.
  flydsl_aot_tensor optional(bool wanted) const {
    return wanted ? tensor.tensor() : flydsl_aot_tensor{};
  }
};

// Keeps a reference to the case.
class DeviceCase {
 public:
  DeviceCase(flydsl_aot_handle *handle, const AttentionCase &c);

  // The fields that both operators have; `params` is else zero.
  template <typename Params>
  void set(Params *params) const {
    params->struct_size = sizeof *params;
    params->scale = case_.scale;
    params->q = q_.tensor();
    params->k = k_.tensor();
    params->v = value_view();
    params->out = out_.tensor();
    if (case_.want_lse) params->lse = lse_.tensor();
    params->mask = case_.mask;
    params->seqused_k = used_k_.optional(keys.used);
    params->block_table = block_table_.optional(keys.paged);
    if (keys.paged && case_.seq_k % 2 == 0) params->max_seqlen_k = case_.seq_k;
    params->softcap = case_.softcap;
    params->alibi_slopes = alibi_slopes_.optional(!case_.alibi_slopes.empty());
    params->sinks = sinks_.optional(!case_.sinks.empty());
    if constexpr (requires { params->k_descale; }) {
      params->k_descale = k_descale_.optional(!case_.k_descale.values.empty());
      params->v_descale = v_descale_.optional(!case_.v_descale.values.empty());
    }
  }

  // Asks the query, gives the workspace that it wants, calls, waits and takes the outputs; says what else was
  // written. Fills all of the result but what only one operator has.
  template <typename Params>
  AttentionResult run(Params *params,
                      flydsl_aot_status (*query)(flydsl_aot_handle *, const Params *,
                                                 flydsl_aot_query_result *),
                      flydsl_aot_status (*call)(flydsl_aot_handle *, const Params *, void *)) {
    AttentionResult result;
    flydsl_aot_query_result answer{};
    answer.struct_size = sizeof answer;
    const flydsl_aot_status query_status = query(handle_, params, &answer);
    // NaN in every type that a kernel may keep there.
    DeviceTensor workspace(handle_, FLYDSL_AOT_BOOL, {static_cast<int64_t>(answer.workspace_bytes)},
                           {{}, {}, {}, 64, 64}, 0xff);
    if (answer.workspace_bytes > 0) params->workspace = workspace.tensor().data;
    params->workspace_bytes = answer.workspace_bytes;
    result.status = call(handle_, params, nullptr);
    finish(query_status, answer, workspace, &result);
    return result;
  }

  const Side rows, keys;

 private:
  flydsl_aot_tensor value_view() const;
  void finish(flydsl_aot_status query_status, const flydsl_aot_query_result &answer,
              DeviceTensor &workspace, AttentionResult *result);
  // A dense result of a tensor that has the queries' sequences.
  template <typename Element>
  std::vector<Element> dense(const std::vector<Element> &values, int64_t channels, Element filler,
                             std::string *stray) const;

  flydsl_aot_handle *handle_;
  const AttentionCase &case_;
  DeviceTensor q_, k_, v_, out_, lse_;
  Numbers<int32_t> used_k_, block_table_;
  Numbers<float> alibi_slopes_, sinks_, k_descale_, v_descale_;
};

// Of a descale; one number that is not used where there are none.
Numbers<float> descale_numbers(flydsl_aot_handle *handle, const AttentionCase::Descale &of);

}  // namespace flydsl::verify
