// A few small problems of every operator, for tests that are about the runtime and not about numbers: every operator of the
// tools' table has one (operator_problems_cover_all), with its tensors in device memory.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tools/library_handle.h"
#include "tools/problem_arguments.h"

namespace flydsl::test {

struct ProblemLine {
  const char *name;  // of the test
  const char *op;
  std::vector<std::string> settings;  // --set of the command
  std::vector<std::string> outputs;   // besides the required ones
  int launches;
};
const std::vector<ProblemLine> &operator_problems();
// The other ways of operators that have more than one: launches in another number or order, workspace of another kind.
const std::vector<ProblemLine> &other_ways();
// The operators without one, "" if there are none.
std::string operators_without_problem();

// A problem with memory of `library`'s device; handles on the same device may run it.
class DeviceProblem {
 public:
  DeviceProblem(const tools::LibraryHandle &library, const ProblemLine &line);

  flydsl_aot_status query(flydsl_aot_handle *handle, flydsl_aot_query_result *result) const;
  flydsl_aot_status query(flydsl_aot_handle *handle) const;
  flydsl_aot_status explain(flydsl_aot_handle *handle) const {
    return problem().explain(
        handle, [](void *, const flydsl_aot_candidate *) {}, nullptr);
  }
  flydsl_aot_status prefetch(flydsl_aot_handle *handle) const { return problem().prefetch(handle); }
  flydsl_aot_status launch(flydsl_aot_handle *handle, void *stream = nullptr) const {
    return problem().launch(handle, stream);
  }
  void set_workspace(void *data, uint64_t bytes) { bound_.problem->set_workspace(data, bytes); }
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  void *workspace() const { return workspace_; }

  // All ones in outputs and workspace.
  void poison();
  bool outputs_are_poison();
  // Waits for the device; what all outputs hold.
  std::vector<std::vector<uint8_t>> results();
  // The inputs' bytes are exchanged for others of the same kind, in place: `turn` 0 gives the first ones again. (Blocks of data
  // are rotated, so that lists of numbers stay what they are.)
  void change_inputs(unsigned turn);

 private:
  const tools::Problem &problem() const { return *bound_.problem; }

  const tools::LibraryHandle &library_;
  tools::BoundProblem bound_;
  std::deque<tools::DeviceMemory> memory_;
  std::vector<std::vector<uint8_t>> inputs_;  // as first uploaded
  void *workspace_ = nullptr;
  uint64_t workspace_bytes_ = 0;
};

}  // namespace flydsl::test
