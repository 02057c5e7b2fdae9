#include "tools/modelled_launch.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "tools/exit_status.h"
#include "tools/random_data.h"
#include "tools/report/launches.h"

namespace flydsl::tools {
namespace {

// Of host memory that random inputs may take. The emulator's memory is sparse: what is not written
// costs nothing and reads as zero.
constexpr uint64_t kMostRandomBytes = uint64_t{4} << 30;

class Memory {
 public:
  explicit Memory(const LibraryHandle &library) : library_(library) {}

  void *allocate(uint64_t bytes, const std::string &name) {
    return blocks_.emplace_back(library_, bytes, name).data();
  }
  void upload(void *to, const void *from, uint64_t bytes, const std::string &name) {
    check(flydsl_aot_device_upload(library_.get(), to, from, bytes), "upload of " + name);
  }

 private:
  const LibraryHandle &library_;
  std::deque<DeviceMemory> blocks_;
};

// Returns a sentence on what the inputs hold.
std::string fill_inputs(Memory &memory, BoundProblem &bound) {
  uint64_t random_bytes = 0;
  for (const BoundTensor &input : bound.problem->inputs)
    if (!bound.files.count(input.name)) random_bytes += bytes_of(input);
  const double share = random_bytes <= kMostRandomBytes ? 1
                                                        : static_cast<double>(kMostRandomBytes) /
                                                              static_cast<double>(random_bytes);

  uint64_t stream = 0;
  for (const BoundTensor &input : bound.problem->inputs) {
    const uint64_t bytes = bytes_of(input);
    auto *data = static_cast<uint8_t *>(input.tensor->data);
    const auto file = bound.files.find(input.name);
    if (file != bound.files.end()) {
      memory.upload(data, file->second.bytes.data(), bytes, input.name);
      continue;
    }
    const std::vector<uint8_t> block = random_block(input.name, input.tensor->dtype, stream++);
    const auto filled = static_cast<uint64_t>(static_cast<double>(bytes) * share);
    for (uint64_t done = 0; done < filled; done += block.size())
      memory.upload(data + done, block.data(), std::min<uint64_t>(block.size(), filled - done),
                    input.name);
  }
  if (random_bytes == 0) return "from files";
  std::string text = "normal, seed " + std::to_string(kRandomSeed) + ", repeated every " +
                     std::to_string(kRandomBlockElements) + " elements";
  if (share < 1)
    text += "; the first " + std::to_string(static_cast<int>(share * 100)) +
            " % of each input, the rest is zero";
  if (!bound.files.empty()) text += "; those given with --in from their files";
  return text;
}

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

  const std::string data = fill_inputs(memory, bound);

  if (set_timing("sample") != 0) throw ToolError(kExitFailure, last_error());
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
  json["data"] = data;
  json["problem_flops"] = problem.flops();
  json["problem_tflops"] = problem.flops() / json.at("seconds").get<double>() * 1e-12;
  json["host_seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return json;
}

}  // namespace flydsl::tools
