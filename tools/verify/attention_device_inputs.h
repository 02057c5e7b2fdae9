// A case's inputs in device memory: what the attention operators' parameters have in common. A call of one of them, and
// whether it left alone what it must.
#pragma once

#include <cstdint>
#include <cstring>
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
  // A dense result of a tensor that has these sequences, rows of no sequence `filler`. *stray: that a row between the
  // sequences does not hold it, if so.
  template <typename Element>
  std::vector<Element> dense(const std::vector<Element> &values, int64_t heads, int64_t channels,
                             Element filler, std::string *stray) const {
    if (!packed) return values;
    std::vector<Element> result = unpack(packing, values, heads, positions, channels, filler);
    const std::vector<Element> again = placed(result, heads, channels, filler);
    if (std::memcmp(again.data(), values.data(), values.size() * sizeof(Element)) != 0)
      *stray = "a row between the sequences was written";
    return result;
  }
};

// Numbers in device memory, of which there may be none.
class Numbers {
 public:
  Numbers(flydsl_aot_handle *handle, flydsl_aot_dtype dtype, bool wanted,
          const std::vector<int64_t> &sizes, const Placement &placement = {},
          uint32_t poison = 0xffffffff)
      : wanted_(wanted),
        tensor_(handle, dtype, wanted ? sizes : std::vector<int64_t>(sizes.size()), placement,
                poison) {}
  template <typename Number>
  void set(const std::vector<Number> &values) {
    if (wanted_) tensor_.set(values);
  }
  // Absent if they are not wanted.
  flydsl_aot_tensor view() const { return wanted_ ? tensor_.tensor() : flydsl_aot_tensor{}; }
  DeviceTensor &tensor() { return tensor_; }

 private:
  bool wanted_;
  DeviceTensor tensor_;
};

class DeviceInputs {
 public:
  // The case must outlive this.
  DeviceInputs(flydsl_aot_handle *handle, const AttentionCase &c);

  // The fields of inputs that the operator has; `params` is else zero.
  template <typename Params>
  void set(Params *params) const {
    const AttentionCase &c = *case_;
    params->struct_size = sizeof *params;
    params->scale = c.scale;
    params->q = q_.tensor();
    params->k = k_.tensor();
    params->v = value_view();
    params->mask = c.mask;
    params->seqused_k = used_k_.view();
    params->softcap = c.softcap;
    params->alibi_slopes = alibi_slopes_.view();
    params->sinks = sinks_.view();
    if constexpr (requires { params->block_table; }) {
      params->block_table = block_table_.view();
      if (keys.paged && c.seq_k % 2 == 0) params->max_seqlen_k = c.seq_k;
      params->k_descale = k_descale_.view();
      params->v_descale = v_descale_.view();
    }
    if constexpr (requires { params->q_descale; }) params->q_descale = q_descale_.view();
    if constexpr (requires { params->cu_seqlens_q; }) {
      params->cu_seqlens_q = starts_q_.view();
      params->cu_seqlens_k = starts_k_.view();
      params->seqused_q = used_q_.view();
      if (rows.packed) params->max_seqlen_q = c.seq_q;
      if (keys.packed) params->max_seqlen_k = c.seq_k;
      params->bias = bias_.view();
      params->visible = visible_.view();
      params->dropout_p = c.dropout_p;
      params->dropout_seed = c.random_on_device ? 77 : c.seed;
      params->dropout_offset = c.random_on_device ? 1000 : c.offset;
      if (c.random_on_device) {
        params->dropout_seed_device = static_cast<uint64_t *>(random_.tensor().data);
        params->dropout_offset_device = params->dropout_seed_device + 1;
      }
    }
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

 protected:
  // Other numbers in the same tensors, the workspace poisoned again: of a case with the same shapes and placements
  // whose sequences, if they are packed or paged, take as much memory.
  void refill(const AttentionCase &c);
  // Once a call returned `status`: waits, and says what it and the query said, and whether it changed the workspace's
  // surroundings or an input. False: the device failed, there is no more to see.
  bool finish(flydsl_aot_status status, CallResult *result);

  const AttentionCase &on_device() const { return *case_; }
  flydsl_aot_handle *handle() const { return handle_; }
  Side rows, keys;

 private:
  void fill();
  flydsl_aot_tensor value_view() const;

  flydsl_aot_handle *handle_;
  const AttentionCase *case_;
  DeviceTensor q_, k_, v_;
  Numbers starts_q_, starts_k_, used_q_, used_k_, block_table_, bias_, visible_, alibi_slopes_,
      sinks_, q_descale_, k_descale_, v_descale_;
  DeviceTensor random_;  // seed and offset
  flydsl_aot_query_result answer_{};
  flydsl_aot_status query_status_ = FLYDSL_AOT_OK;
  std::unique_ptr<DeviceTensor> workspace_;
};

// Sizes without the last.
std::vector<int64_t> without_channels(std::vector<int64_t> sizes);

}  // namespace flydsl::verify
