#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/input_data.h"
#include "tools/library_handle.h"

namespace flydsl::tools {
namespace {

double milliseconds_of(const std::function<void()> &call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Two spellings of one path. The file need not exist, its directory must.
bool same_place(const std::string &a, const std::string &b) {
  std::error_code failed;
  const auto place = [&](const std::string &file) {
    const std::filesystem::path path(file);
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    return std::filesystem::canonical(folder, failed) / path.filename();
  };
  const auto first = place(a), second = place(b);
  return failed ? a == b : first == second;
}

// Writers for the outputs, opened before anything runs so that a path that cannot be written is
// found out first.
std::map<std::string, OutputFile> open_outputs(const std::map<std::string, std::string> &files) {
  std::map<std::string, OutputFile> writers;
  for (const auto &[name, file] : files) {
    for (const auto &[other_name, other_file] : files) {
      if (other_name < name && same_place(other_file, file)) {
        bad_input("--out " + name + "=" + file + ": is also the file of " + other_name);
      }
    }
    try {
      writers.try_emplace(name, file);
    } catch (const std::runtime_error &error) {
      bad_input("--out " + name + "=" + file + ": " + error.what());
    }
  }
  return writers;
}

void print_header(const flydsl_aot_info &info, const Operator &op, const Problem &problem,
                  const flydsl_aot_query_result &result) {
  std::printf("operator   %s\n", op.name);
  for (const BoundTensor &input : problem.inputs) {
    std::printf("input      %s %s %s\n", input.name.c_str(), format_shape(input.file_shape).c_str(),
                flydsl_aot_dtype_name(input.tensor->dtype));
  }
  for (const std::string &setting : problem.settings)
    std::printf("setting    %s\n", setting.c_str());
  std::printf("device     %s\n", describe_device(info).c_str());
  std::printf("archive    %s\n", info.archive_path);
  std::printf("kernel     %s\n", result.kernel[0] ? result.kernel : "(none needed)");
  std::printf("backend    %s\n", result.backend[0] ? result.backend : "-");
}

}  // namespace

void command_run(const RunArguments &arguments) {
  const auto output_files =
      parse_assignments("--out", arguments.outputs, names_of(find_operator(arguments.op).outputs));
  std::vector<std::string> wanted;
  for (const auto &output : output_files) wanted.push_back(output.first);
  const BoundProblem bound =
      bind_problem({arguments.op, arguments.inputs, arguments.settings, wanted});
  const Operator &op = *bound.op;
  require_tensors("--out", op.outputs, output_files);
  if (output_files.empty()) bad_input("--out: none is given, so there is nothing to compute");
  const std::unique_ptr<Problem> &problem = bound.problem;
  for (const BoundTensor &output : problem->outputs) {
    if (output_files.count(output.name)) continue;
    const auto spec = std::find_if(op.outputs.begin(), op.outputs.end(),
                                   [&](const auto &known) { return known.name == output.name; });
    bad_input("--out " + output.name + "=... is missing: " + spec->help);
  }

  LibraryHandle library;
  library.open(arguments.open);
  const flydsl_aot_info info = library.info();
  if (info.device == FLYDSL_AOT_DEVICE_NONE) {
    bad_input("run needs a device: --device emulator or --device hip (explain works without one)");
  }
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  if (const flydsl_aot_status status = problem->query(library.get(), &result);
      status != FLYDSL_AOT_OK) {
    fail_with_status(status, op.name, flydsl_aot_last_error());
  }
  std::map<std::string, OutputFile> writers = open_outputs(output_files);

  std::deque<DeviceMemory> memory;
  for (const BoundTensor &input : problem->inputs)
    input.tensor->data = memory.emplace_back(library, bytes_of(input), input.name).data();
  const std::string data = upload_inputs(library, bound);
  for (const BoundTensor &output : problem->outputs) {
    // All ones is NaN in every floating type: an element that was never written shows.
    const std::vector<uint8_t> poison(bytes_of(output), 0xff);
    output.tensor->data = memory.emplace_back(library, poison.size(), output.name).data();
    check(
        flydsl_aot_device_upload(library.get(), output.tensor->data, poison.data(), poison.size()),
        "upload of " + output.name);
  }
  if (result.workspace_bytes > 0) {
    problem->set_workspace(
        memory.emplace_back(library, result.workspace_bytes, "the workspace").data(),
        result.workspace_bytes);
  }

  print_header(info, op, *problem, result);
  std::printf("data       %s\n", data.c_str());
  const auto call = [&] {
    check(problem->launch(library.get()), op.name);
    check(flydsl_aot_device_synchronize(library.get()), op.name);
  };
  const char *label = info.device == FLYDSL_AOT_DEVICE_EMULATOR
                          ? "host time of the emulator, not a GPU time"
                          : "host time, launch to completion";
  std::printf("time       first call %.3f ms, kernel load included (%s)\n", milliseconds_of(call),
              label);
  if (arguments.repeat > 0) {
    double best = milliseconds_of(call);
    for (int i = 1; i < arguments.repeat; ++i) best = std::min(best, milliseconds_of(call));
    std::printf("time       best of %d further %.3f ms (%s)\n", arguments.repeat, best, label);
  }

  for (const BoundTensor &output : problem->outputs) {
    NpyArray array{descr_of(output.tensor->dtype), output.file_shape, {}};
    array.bytes.resize(bytes_of(output));
    check(flydsl_aot_device_download(library.get(), array.bytes.data(), output.tensor->data,
                                     array.bytes.size()),
          "download of " + output.name);
    try {
      write_npy(writers.at(output.name), array);
    } catch (const std::runtime_error &error) {
      bad_input("--out " + output.name + "=" + output_files.at(output.name) + ": " + error.what());
    }
  }
  for (const BoundTensor &output : problem->outputs) {
    const std::string &file = output_files.at(output.name);
    try {
      writers.at(output.name).commit();
    } catch (const std::runtime_error &error) {
      bad_input("--out " + output.name + "=" + file + ": " + error.what());
    }
    std::printf("output     %s %s %s -> %s\n", output.name.c_str(),
                format_shape(output.file_shape).c_str(),
                flydsl_aot_dtype_name(output.tensor->dtype), file.c_str());
  }
}

}  // namespace flydsl::tools
