#include <dlfcn.h>

#include <cstdio>
#include <memory>

#include "emulator/hip/flydsl_emu.h"
#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"

namespace flydsl::tools {
namespace {

template <typename Function>
Function *find(void *library, const char *path, const char *name) {
  void *found = dlsym(library, name);
  if (!found)
    throw ToolError(kExitFailure,
                    std::string(path) + ": has no " + name + "; another version of the emulator?");
  return reinterpret_cast<Function *>(found);
}

}  // namespace

void command_bench_emulator(bool json) {
  OpenArguments arguments;
  arguments.device = "emulator";
  LibraryHandle library;
  library.open(arguments);
  const std::string path = library.info().device_library;
  // The one that the handle has loaded already.
  const std::unique_ptr<void, int (*)(void *)> emulator(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL),
                                                        dlclose);
  if (!emulator) throw ToolError(kExitFailure, dlerror());
  const auto benchmark =
      find<decltype(flydsl_emu_benchmark)>(emulator.get(), path.c_str(), "flydsl_emu_benchmark");
  const auto version =
      find<decltype(flydsl_emu_version)>(emulator.get(), path.c_str(), "flydsl_emu_version");
  const auto last_error =
      find<decltype(flydsl_emu_last_error)>(emulator.get(), path.c_str(), "flydsl_emu_last_error");

  flydsl_emu_benchmark_result result{};
  result.struct_size = sizeof result;
  if (benchmark(&result) != 0) throw ToolError(kExitFailure, last_error());
  const struct {
    const char *key, *unit;
    double scale, value;
  } rows[] = {
      {"valu_wave_instructions_per_s", "M wave-instructions/s", 1e-6,
       result.valu_wave_instructions_per_s},
      {"mfma_bf16_flop_per_s", "GFLOP/s", 1e-9, result.mfma_bf16_flop_per_s},
      {"mfma_mxfp8_flop_per_s", "GFLOP/s", 1e-9, result.mfma_mxfp8_flop_per_s},
  };
  if (json) {
    std::printf("{\"emulator_version\": \"%s\", \"threads\": 1, \"time\": \"host\"", version());
    for (const auto &row : rows) std::printf(", \"%s\": %.6g", row.key, row.value);
    std::printf("}\n");
    return;
  }
  std::printf("emulator %s (%s), one host thread; host speed, says nothing about a GPU\n",
              version(), path.c_str());
  for (const auto &row : rows)
    std::printf("%-30s %8.1f %s\n", row.key, row.value * row.scale, row.unit);
}

}  // namespace flydsl::tools
