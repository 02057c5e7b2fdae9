// flydsl-emu-bench: the same figures as `flydsl-aot bench emulator`, without the runtime library.
#include <cstdio>

#include "emulator/bench/benchmark.h"

int main() {
  flydsl::emu::BenchmarkResult result;
  std::string error;
  if (!flydsl::emu::run_benchmark(result, error)) {
    std::fprintf(stderr, "flydsl-emu-bench: %s\n", error.c_str());
    return 1;
  }
  std::printf("valu   %.1f M wave-instructions/s\n", result.valu_wave_instructions_per_s / 1e6);
  std::printf("mfma   %.1f GFLOP/s bf16\n", result.mfma_bf16_flop_per_s / 1e9);
  std::printf("mxfp8  %.1f GFLOP/s\n", result.mfma_mxfp8_flop_per_s / 1e9);
  return 0;
}
