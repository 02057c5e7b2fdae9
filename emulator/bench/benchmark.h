// How fast the emulator runs on this host: instruction loops as one wave on one host thread.
#pragma once

#include <string>

namespace flydsl::emu {

struct BenchmarkResult {
  double valu_wave_instructions_per_s = 0;  // full-EXEC vector instructions
  double mfma_bf16_flop_per_s = 0;
  double mfma_mxfp8_flop_per_s = 0;  // scaled e4m3
};

// Best of five runs of each loop, in processor time of the calling thread: the figures should not depend on what
// else the machine does. False with a reason when a loop does not run.
bool run_benchmark(BenchmarkResult &result, std::string &error);

}  // namespace flydsl::emu
