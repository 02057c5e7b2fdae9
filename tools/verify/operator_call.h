// One call of an operator on tensors in device memory: what the operators over rows share. Inputs must not change, nothing
// outside an output may.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "tools/verify/attention_result.h"
#include "tools/verify/case_tensor.h"
#include "tools/verify/reals.h"

namespace flydsl::verify {

class OperatorCall {
 public:
  OperatorCall(flydsl_aot_handle *handle, uint64_t seed)
      : handle_(handle), random_(seed * 31 + 7) {}

  // `rule` places it; the first `free_axes` axes may be in any order in memory.
  DeviceTensor &input(const std::string &name, const Elements &elements,
                      const std::vector<int64_t> &sizes, const PlacementRule &rule, int free_axes) {
    Entry &entry = add(name, elements.dtype, sizes, rule, free_axes);
    entry.is_input = true;
    elements.put(entry.tensor);
    return entry.tensor;
  }
  DeviceTensor &output(const std::string &name, flydsl_aot_dtype dtype,
                       const std::vector<int64_t> &sizes, const PlacementRule &rule,
                       int free_axes) {
    return add(name, dtype, sizes, rule, free_axes).tensor;
  }
  // The same where it is said.
  DeviceTensor &input(const std::string &name, const Elements &elements,
                      const std::vector<int64_t> &sizes, const Placement &placement) {
    Entry &entry = entries_.emplace_back(name, handle_, elements.dtype, sizes, placement);
    entry.is_input = true;
    elements.put(entry.tensor);
    return entry.tensor;
  }
  DeviceTensor &output(const std::string &name, flydsl_aot_dtype dtype,
                       const std::vector<int64_t> &sizes, const Placement &placement,
                       uint32_t poison = kOutputPoison) {
    return entries_.emplace_back(name, handle_, dtype, sizes, placement, poison).tensor;
  }
  // The input is an output, too.
  void changes(const DeviceTensor &input) {
    for (Entry &entry : entries_)
      if (&entry.tensor == &input) entry.is_input = false;
  }

  // Query, workspace, call, wait.
  template <typename Params>
  void run(Params *params,
           flydsl_aot_status (*query)(flydsl_aot_handle *, const Params *,
                                      flydsl_aot_query_result *),
           flydsl_aot_status (*call)(flydsl_aot_handle *, const Params *, void *),
           CallResult *result) {
    params->struct_size = sizeof *params;
    flydsl_aot_query_result answer{};
    answer.struct_size = sizeof answer;
    const flydsl_aot_status asked = query(handle_, params, &answer);
    if constexpr (requires { params->workspace; }) {
      workspace_ = std::make_unique<DeviceTensor>(
          handle_, FLYDSL_AOT_BOOL,
          std::vector<int64_t>{static_cast<int64_t>(answer.workspace_bytes)},
          Placement{{}, {}, {}, 64, 64}, 0xff);
      if (answer.workspace_bytes > 0) params->workspace = workspace_->tensor().data;
      params->workspace_bytes = answer.workspace_bytes;
    }
    finish(asked, answer, call(handle_, params, nullptr), result);
  }

 private:
  struct Entry {
    std::string name;
    DeviceTensor tensor;
    bool is_input = false;
    Entry(const std::string &its_name, flydsl_aot_handle *handle, flydsl_aot_dtype dtype,
          const std::vector<int64_t> &sizes, const Placement &placement,
          uint32_t poison = kOutputPoison)
        : name(its_name), tensor(handle, dtype, sizes, placement, poison) {}
  };

  Entry &add(const std::string &name, flydsl_aot_dtype dtype, const std::vector<int64_t> &sizes,
             const PlacementRule &rule, int free_axes);
  void finish(flydsl_aot_status asked, const flydsl_aot_query_result &answer,
              flydsl_aot_status status, CallResult *result);

  flydsl_aot_handle *handle_;
  Random random_;
  std::deque<Entry> entries_;
  std::unique_ptr<DeviceTensor> workspace_;
};

// What a case without a fault in the call comes to. `expect`: the status it must have been refused with, or "".
// Whether the result is there to be judged; else *fault says why not, or "" if it was refused as it should be.
bool call_is_to_be_judged(const std::string &expect, const CallResult &result, std::string *fault);

// Whether the call ran the kernel that the case is for on gfx950, a part of its name or ""; else *fault says which it ran. Other
// architectures have fewer kernels and compute units: any may run there.
bool ran_wanted_kernel(flydsl_aot_handle *handle, const std::string &wanted,
                       const CallResult &result, std::string *fault);

}  // namespace flydsl::verify
