// Recording work-groups while the functional engine runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/engine/dispatch.h"
#include "emulator/timing/trace.h"
#include "emulator/timing/turns.h"

namespace flydsl::emu::timing {

// Records some work-groups of one dispatch:
//   Recorder recorder({0, 17});
//   DispatchOptions options;
//   recorder.attach(options, true);
//   run_dispatch(kernel, dispatch, memory, options);
//   std::vector<GroupTrace> traces = recorder.take();
class Recorder {
 public:
  // `groups`: linear indices, x fastest. A wave that has executed its part of a work-group's `budget`
  // of wave-instructions ends there, quietly (GroupTrace::truncated); 0: none does. `turns`: what work-groups
  // that depend on others find (turns.h); null: what is there. A recorder of work-group 0 alone fills it.
  explicit Recorder(std::vector<uint64_t> groups, uint64_t budget = 0, Turns *turns = nullptr);
  ~Recorder();

  // `only`: no other work-groups run. The recorder outlives the dispatch.
  void attach(DispatchOptions &options, bool only);
  // In the order of linear_id; what a fault left unfinished is missing.
  std::vector<GroupTrace> take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flydsl::emu::timing
