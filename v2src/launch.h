// What every operator does once its problem is described: choose a kernel, load it, launch it, or
// say why not.
#pragma once

#include <array>
#include <cstdint>
#include <new>

#include "flydsl_aot/library.h"
#include "src/device/process.h"
#include "src/module/cache.h"
#include "src/select/select.h"
#include "src/status/status.h"
#include "v2src/call_recording.h"
#include "v2src/handle.h"
#include "v2src/struct_size.h"

namespace flydsl {

// Grid rule linear_tiles (docs/archive-format.md), for the tile of one archive entry.
struct LinearTiles {
  uint32_t grid_x = 0;
  uint32_t grid_y = 0;
  uint32_t row_tiles = 0;
};
// `rows`, `batches` and `heads` are above 0. UNSUPPORTED_SIZE when the tiles do not fit 31 bits.
Status linear_tiles(int64_t rows, int64_t batches, int64_t heads, uint32_t tile_rows,
                    LinearTiles *tiles);

// The kernel for a problem on a target, and the tuning row that decided, null for none; NO_KERNEL with every candidate's
// refusal, COMPILER_NOT_FOUND where it would have to be compiled and cannot.
Status choose(const flydsl_aot_handle *handle, const select::Problem &problem,
              const archive::TargetId &target, uint32_t *entry,
              const archive::TuningRow **row = nullptr);

// Fills the kernel and backend of a query's result; its reason, where the kernel is to be compiled.
void describe_kernel(const flydsl_aot_handle *handle, uint32_t entry,
                     flydsl_aot_query_result *result);

// What every query entry point does: `fill` checks the caller's parameters and completes the result,
// which is written with its status and reason however that ended.
template <class Params, class Fill>
Status answer_query(const flydsl_aot_handle *handle, const Params *caller,
                    flydsl_aot_query_result *caller_result, Fill fill) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  if (!caller) return error(FLYDSL_AOT_INVALID_ARGUMENT, "params is NULL");
  FLYDSL_RETURN_IF_ERROR(check_output_struct("result", caller_result));
  flydsl_aot_query_result result{};
  Status status = fill(handle, caller, &result);
  result.status = status.code();
  if (!status.ok()) copy_utf8(result.reason, sizeof result.reason, status.message().c_str());
  write_struct(result, caller_result);
  return status;
}

// Calls back for every candidate of the problem, best first; NO_KERNEL when none is taken. `unused`: why the call does
// without such a kernel, none is taken then.
Status explain_candidates(const flydsl_aot_handle *handle, const select::Problem &problem,
                          const archive::TargetId &target, flydsl_aot_candidate_callback callback,
                          void *user, const char *unused = nullptr);

// Of operators whose calls launch one kernel.
struct NoOthers {
  template <class Problem, class Explain>
  Status operator()(const flydsl_aot_handle *, const Problem &, const archive::TargetId &,
                    Explain) const {
    return {};
  }
};

// What every explain entry point does. `prepare` reads and checks the caller's parameters, for a query. `others`(handle, problem,
// target, explain) gives explain the problems of what the call launches besides.
template <class Problem, class Params, class Prepare, class Others = NoOthers>
Status explain_problem(const flydsl_aot_handle *handle, const Params *caller, Prepare prepare,
                       flydsl_aot_candidate_callback callback, void *user, Others others = {}) {
  if (!callback) return error(FLYDSL_AOT_INVALID_ARGUMENT, "callback is NULL");
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  const auto explain = [&](const select::Problem &key) {
    return explain_candidates(handle, key, *target, callback, user);
  };
  FLYDSL_RETURN_IF_ERROR(explain(problem.key));
  return others(handle, problem, *target, explain);
}

// The device that a call on `stream` is for.
Status call_device(const flydsl_aot_handle *handle, void *stream, int *device);

// A call that is made and kept for later ones of its form: once more with other addresses, without launching.
template <class Params, class Prepare, class LaunchProblem, class Problem>
__attribute__((noinline)) Status call_and_keep(flydsl_aot_handle *handle, const CallForm &form,
                                               Prepare prepare, LaunchProblem launch,
                                               const Problem &problem, void *stream) {
  CallRecording recording(form);
  FLYDSL_RETURN_IF_ERROR(launch(handle, problem, stream));
  try {
    Params elsewhere;
    ReadStruct<Params> params;
    Problem again;
    if (recording.rehearse(&elsewhere) &&
        prepare(handle, &elsewhere, false, &params, &again).ok() &&
        launch(handle, again, stream).ok())
      handle->recent_calls->keep(form, recording.finish());
  } catch (const std::bad_alloc &) {
  }
  return {};
}

// The long way of a call: `launch`(handle, problem, stream), if there is something to compute. `keep`: null, or the form to keep it under.
// (A function of its own, so that a repeated call does not make room for params and problem.)
template <class Problem, class Params, class Prepare, class LaunchProblem>
__attribute__((noinline)) Status call_anew(flydsl_aot_handle *handle, const Params *caller,
                                           Prepare prepare, LaunchProblem launch, void *stream,
                                           const CallForm *keep) {
  ReadStruct<Params> params;
  Problem problem;
  const auto call = [&]() -> Status {
    FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, false, &params, &problem));
    FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
    if (problem.empty) return {};
    if (keep) return call_and_keep<Params>(handle, *keep, prepare, launch, problem, stream);
    return launch(handle, problem, stream);
  };
  if (!handle || !handle->calls) return call();
  return handle->calls->record(*handle->archive, params, call);
}

// What every call of an operator does.
template <class Problem, class Params, class Prepare, class LaunchProblem>
Status call_problem(flydsl_aot_handle *handle, const Params *caller, Prepare prepare,
                    LaunchProblem launch, void *stream) {
  // Calls that are recorded have a row each, with what selection found: there are no recent calls then.
  if (!handle || !handle->recent_calls || !caller || device::forked_after_use())
    return call_anew<Problem>(handle, caller, prepare, launch, stream, nullptr);
  RecentCalls &recent = *handle->recent_calls;
  CallForm form;
  int device = 0;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->stream_device(stream, &device));
  auto answer = RecentCalls::Answer::kUnknown;
  if (read_form(caller, device, recent.most_alignment(), &form)) {
    Status status;
    answer = recent.repeat(handle, form, stream, &status);
    if (answer == RecentCalls::Answer::kMade) return status;
  }
  return call_anew<Problem>(handle, caller, prepare, launch, stream,
                            answer == RecentCalls::Answer::kWorthKeeping ? &form : nullptr);
}

// Loads the problem's kernel on the current device.
Status prefetch(flydsl_aot_handle *handle, const select::Problem &problem,
                const module::KernargContract &contract);

// What the query and prefetch entry points of an operator with one kernel and no workspace do.
template <class Problem, class Params, class Prepare>
Status query_problem(const flydsl_aot_handle *handle, const Params *caller, Prepare prepare,
                     flydsl_aot_query_result *result) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  uint32_t entry = 0;
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem.key, *target, &entry));
  describe_kernel(handle, entry, result);
  return {};
}
template <class Problem, class Params, class Prepare>
Status prefetch_problem(flydsl_aot_handle *handle, const Params *caller, Prepare prepare,
                        const module::KernargContract &contract) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  return problem.empty ? Status() : prefetch(handle, problem.key, contract);
}

// A launch in progress: the stream's device is current from begin() to the end of the object's
// life.
class Launch {
 public:
  explicit Launch(flydsl_aot_handle *handle) : handle_(handle), scope_(*handle->runtime) {}

  // Makes the stream's device current, chooses the kernel for it and loads it.
  Status begin(const select::Problem &problem, const module::KernargContract &contract,
               void *stream);
  // The same with a kernel that choose() has found, and the tuning row that decided.
  Status begin(uint32_t chosen, const archive::TuningRow *row,
               const module::KernargContract &contract, void *stream);
  const archive::Entry &entry() const { return handle_->archive->entries()[entry_]; }
  // Launches with the arguments at `kernarg`.
  Status run(const LinearTiles &tiles, void *kernarg, size_t kernarg_bytes) const {
    return run_grid({tiles.grid_x, tiles.grid_y, 1}, kernarg, kernarg_bytes);
  }
  Status run_grid(const std::array<uint32_t, 3> &grid, void *kernarg, size_t kernarg_bytes) const;

 private:
  Status enter(const module::KernargContract &contract, void *stream);
  Status load(const archive::TuningRow *row);
  void note() const;  // for the row of the call

  flydsl_aot_handle *handle_;
  device::DeviceScope scope_;
  device::HipStream stream_ = nullptr;
  module::KernargContract contract_{};
  int device_ = 0;
  module::ModuleCache::Use kernel_;
  uint32_t entry_ = 0;
  const archive::TuningRow *row_ = nullptr;  // that decided
};

}  // namespace flydsl
