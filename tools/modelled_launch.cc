#include "tools/modelled_launch.h"

#include <chrono>
#include <deque>

#include "tools/exit_status.h"
#include "tools/input_data.h"
#include "tools/report/launches.h"

namespace flydsl::tools {
namespace {

class Memory {
 public:
  explicit Memory(const LibraryHandle &library) : library_(library) {}

  void *allocate(uint64_t bytes, const std::string &name) {
    return blocks_.emplace_back(library_, bytes, name).data();
  }

 private:
  const LibraryHandle &library_;
  std::deque<DeviceMemory> blocks_;
};

// What the model says about the thread's last `count` launches.
Json timing_of(const EmulatorLibrary &emulator, uint64_t count, bool detail) {
  const auto recent_timing = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_recent_timing);
  const auto last_error = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_last_error);
  const auto timing = [&](uint64_t index, bool with_detail) {
    const char *text = recent_timing(count - 1 - index, with_detail ? 1 : 0);
    if (!text || !text[0]) throw ToolError(kExitFailure, std::string("no timing: ") + last_error());
    return Json::parse(text);
  };
  if (count == 0) throw ToolError(kExitFailure, "no timing: the call launched nothing");
  std::vector<Json> launches;
  for (uint64_t i = 0; i < count; ++i) launches.push_back(timing(i, false));
  const size_t longest = longest_launch(launches);
  return join_launches(launches, detail ? timing(longest, true) : launches[longest]);
}

}  // namespace

Json model_launch(const LibraryHandle &library, const EmulatorLibrary &emulator,
                  BoundProblem &bound, bool detail) {
  const auto begin = std::chrono::steady_clock::now();
  const auto set_timing = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_set_timing);
  const auto launch_count = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_launch_count);
  const auto last_error = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_last_error);
  Problem &problem = *bound.problem;
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  check(problem.query(library.get(), &result), bound.op->name);
  if (!result.kernel[0]) bad_input(std::string(bound.op->name) + ": no kernel is needed for this");

  Memory memory(library);
  for (const auto *tensors : {&problem.inputs, &problem.outputs}) {
    for (const BoundTensor &bound_tensor : *tensors)
      bound_tensor.tensor->data = memory.allocate(bytes_of(bound_tensor), bound_tensor.name);
  }
  if (result.workspace_bytes > 0) {
    problem.set_workspace(memory.allocate(result.workspace_bytes, "the workspace"),
                          result.workspace_bytes);
  }

  const std::string data = upload_inputs(library, bound);

  if (set_timing(problem.launches_depend_on_data() ? "full" : "sample") != 0)
    throw ToolError(kExitFailure, last_error());
  const uint64_t launched_before = launch_count();
  check(problem.launch(library.get()), bound.op->name);
  check(flydsl_aot_device_synchronize(library.get()), bound.op->name);
  Json json = timing_of(emulator, launch_count() - launched_before, detail);
  set_timing("off");

  json["operator"] = bound.op->name;
  json["backend"] = result.backend;
  for (const BoundTensor &input : problem.inputs) {
    json["inputs"][input.name] =
        format_shape(input.file_shape) + " " + flydsl_aot_dtype_name(input.tensor->dtype);
  }
  json["settings"] = problem.settings;
  for (const auto &[name, value] : problem.description()) json["problem"][name] = value;
  json["data"] = data;
  json["problem_flops"] = problem.flops();
  json["problem_tflops"] = problem.flops() / json.at("seconds").get<double>() * 1e-12;
  json["host_seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return json;
}

}  // namespace flydsl::tools
