#include "tools/verify/operator_call.h"

namespace flydsl::verify {

OperatorCall::Entry &OperatorCall::add(const std::string &name, flydsl_aot_dtype dtype,
                                       const std::vector<int64_t> &sizes, const PlacementRule &rule,
                                       int free_axes) {
  const int rank = static_cast<int>(sizes.size());
  const Placement placement =
      place(rule, random_, rank, free_axes, "", flydsl_aot_dtype_bytes(dtype));
  return entries_.emplace_back(name, handle_, dtype, sizes, placement);
}

void OperatorCall::finish(flydsl_aot_status asked, const flydsl_aot_query_result &answer,
                          flydsl_aot_status status, CallResult *result) {
  result->status = status;
  result->kernel = answer.kernel;
  if (status != FLYDSL_AOT_OK) result->message = flydsl_aot_last_error();
  if (status != asked || answer.status != asked) {
    result->contradiction = std::string("the query said ") + flydsl_aot_status_name(asked) + " (" +
                            answer.reason + "), the call " + flydsl_aot_status_name(status) + " (" +
                            result->message + ")";
  }
  if (flydsl_aot_device_synchronize(handle_) != FLYDSL_AOT_OK) {
    result->device_failed = true;
    result->contradiction = flydsl_aot_last_error();
    return;
  }
  result->outputs_untouched = true;
  if (workspace_) {
    workspace_->download();
    if (const std::string changed = workspace_->changed_outside(); !changed.empty())
      result->stray_write = "workspace: " + changed;
  }
  for (Entry &entry : entries_) {
    entry.tensor.download();
    if (entry.is_input && !entry.tensor.untouched())
      result->stray_write = entry.name + " was changed";
    if (!entry.is_input) result->outputs_untouched &= entry.tensor.untouched();
    if (const std::string changed = entry.tensor.changed_outside(); !changed.empty())
      result->stray_write = entry.name + ": " + changed;
  }
}

bool call_is_to_be_judged(const std::string &expect, const CallResult &result, std::string *fault) {
  *fault = result.contradiction;
  if (fault->empty()) *fault = result.stray_write;
  if (!fault->empty()) return false;
  const std::string name = flydsl_aot_status_name(result.status);
  if (!expect.empty()) {
    if (expect != name)
      *fault = "the call gave " + name + " (" + result.message + "), not " + expect;
    else if (result.message.empty())
      *fault = "refused without a message";
    else if (!result.outputs_untouched)
      *fault = "a refused call wrote an output";
    return false;
  }
  if (result.status != FLYDSL_AOT_OK) *fault = name + ": " + result.message;
  return fault->empty();
}

bool ran_wanted_kernel(flydsl_aot_handle *handle, const std::string &wanted,
                       const CallResult &result, std::string *fault) {
  flydsl_aot_info info{};
  info.struct_size = sizeof info;
  if (result.kernel.find(wanted) != std::string::npos ||
      (flydsl_aot_get_info(handle, &info) == FLYDSL_AOT_OK && info.arch != std::string("gfx950")))
    return true;
  *fault = "ran " + result.kernel + ", not " + wanted;
  return false;
}

}  // namespace flydsl::verify
