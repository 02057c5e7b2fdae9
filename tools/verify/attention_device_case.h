// A case in device memory: what the attention operators' parameters have in common, and whether a call left alone
// what it must.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/verify/attention_forward_case.h"
#include "tools/verify/attention_result.h"

namespace flydsl::verify {

// The queries' or the keys' side of a case: its sequences, and where they are.
struct Side {
  int64_t batches, positions;
  bool packed, used, paged;
  std::vector<int64_t> lengths;
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

// Numbers in device memory, of which there may be none.
class Numbers {
 public:
  Numbers(flydsl_aot_handle *handle, flydsl_aot_dtype dtype, bool wanted,
          const std::vector<int64_t> &sizes, const Placement &placement = {})
      : wanted_(wanted),
        tensor_(handle, dtype, wanted ? sizes : std::vector<int64_t>(sizes.size()), placement,
                0xffffffff) {}
  template <typename Number>
  void set(const std::vector<Number> &values) {
    if (wanted_) tensor_.set(values);
  }
  // Absent if they are not wanted.
  flydsl_aot_tensor view() const { return wanted_ ? tensor_.tensor() : flydsl_aot_tensor{}; }

 private:
  bool wanted_;
  DeviceTensor tensor_;
};

class DeviceCase {
 public:
  // The case must outlive this.
  DeviceCase(flydsl_aot_handle *handle, const AttentionCase &c);

  // Other numbers in the same tensors, outputs and workspace poisoned again: of a case with the same shapes and
  // placements whose sequences, if they are packed or paged, take as much memory.
  void refill(const AttentionCase &c);

  // The fields that both operators have; `params` is else zero.
  template <typename Params>
  void set(Params *params) const {
    params->struct_size = sizeof *params;
    params->scale = case_->scale;
    params->q = q_.tensor();
    params->k = k_.tensor();
    params->v = value_view();
    params->out = out_.tensor();
    if (case_->want_lse) params->lse = lse_.tensor();
    params->mask = case_->mask;
    params->seqused_k = used_k_.view();
    params->block_table = block_table_.view();
    if (keys.paged && case_->seq_k % 2 == 0) params->max_seqlen_k = case_->seq_k;
    params->softcap = case_->softcap;
    params->alibi_slopes = alibi_slopes_.view();
    params->sinks = sinks_.view();
    params->k_descale = k_descale_.view();
    params->v_descale = v_descale_.view();
  }

  // Asks the query, and gives the workspace that it wants.
  template <typename Params>
  void prepare(Params *params, flydsl_aot_status (*query)(flydsl_aot_handle *, const Params *,
                                                          flydsl_aot_query_result *)) {
    answer_.struct_size = sizeof answer_;
    query_status_ = query(handle_, params, &answer_);
    // NaN in every type that a kernel may keep there.
    workspace_ = std::make_unique<DeviceTensor>(
        handle_, FLYDSL_AOT_BOOL,
        std::vector<int64_t>{static_cast<int64_t>(answer_.workspace_bytes)},
        Placement{{}, {}, {}, 64, 64}, 0xff);
    if (answer_.workspace_bytes > 0) params->workspace = workspace_->tensor().data;
    params->workspace_bytes = answer_.workspace_bytes;
  }
  // Once a call returned `status`: waits and takes the outputs; says what else was written. Fills all of the result
  // but what only one operator has.
  AttentionResult finish(flydsl_aot_status status);

 protected:
  const AttentionCase &on_device() const { return *case_; }
  flydsl_aot_handle *handle() const { return handle_; }
  Side rows, keys;

 private:
  void fill();
  flydsl_aot_tensor value_view() const;
  // A dense result of a tensor that has the queries' sequences.
  template <typename Element>
  std::vector<Element> dense(const std::vector<Element> &values, int64_t channels, Element filler,
                             std::string *stray) const;

  flydsl_aot_handle *handle_;
  const AttentionCase *case_;
  DeviceTensor q_, k_, v_, out_, lse_;
  Numbers used_k_, block_table_, alibi_slopes_, sinks_, k_descale_, v_descale_;
  flydsl_aot_query_result answer_{};
  flydsl_aot_status query_status_ = FLYDSL_AOT_OK;
  std::unique_ptr<DeviceTensor> workspace_;
};

// Of a descale.
Numbers descale_numbers(flydsl_aot_handle *handle, const AttentionCase::Descale &of);

}  // namespace flydsl::verify
