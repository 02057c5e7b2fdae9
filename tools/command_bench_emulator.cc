#include <cstdio>

#include "tools/bench_checks.h"
#include "tools/commands.h"
#include "tools/emulator_library.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"

namespace flydsl::tools {

void command_bench_emulator(bool json) {
  const double slowdown = checks_all_slowdown();
  OpenArguments arguments;
  arguments.device = "emulator";
  LibraryHandle library;
  library.open(arguments);
  const EmulatorLibrary emulator(library);
  const auto benchmark = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_benchmark);
  const auto version = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_version);
  const auto last_error = FLYDSL_EMULATOR_FUNCTION(emulator, flydsl_emu_last_error);

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
    std::printf(", \"checks_all_slowdown\": %.3g}\n", slowdown);
    return;
  }
  std::printf("emulator %s (%s), one host thread; host speed, says nothing about a GPU\n",
              version(), emulator.path().c_str());
  for (const auto &row : rows)
    std::printf("%-30s %8.1f %s\n", row.key, row.value * row.scale, row.unit);
  std::printf("%-30s %8.1f times the time without (%s)\n", "checks_all_slowdown", slowdown,
              kChecksWorkload);
}

}  // namespace flydsl::tools
