// Speed of the instruction loop, one host thread: flydsl-emu-bench [directory of the assembled
// loops].
#include <time.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/engine/dispatch.h"
#include "emulator/engine/program.h"

namespace {

using flydsl::emu::DispatchResult;

// Processor time of this thread: the figures should not depend on what else the machine does.
double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// Best of five runs of a code file as one wave in one work-group.
bool best_run(const std::string &path, DispatchResult &best) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> code((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (code.empty()) {
    std::fprintf(stderr, "flydsl-emu-bench: cannot read %s\n", path.c_str());
    return false;
  }
  flydsl::emu::Kernel kernel;
  kernel.name = path;
  kernel.program = flydsl::emu::decode_program("gfx950", code.data(), code.size());
  kernel.entry_address = reinterpret_cast<uint64_t>(code.data());
  kernel.compute_pgm_rsrc1 = 0xf0u << 12 | 1u << 21 | 1u << 23;  // denormals kept, DX10_CLAMP, IEEE
  flydsl::emu::Dispatch dispatch;
  dispatch.block[0] = 64;
  const flydsl::emu::RegionSnapshot memory({});
  best.host_seconds = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = thread_seconds();
    DispatchResult r = run_dispatch(kernel, dispatch, memory, {.threads = 1});
    r.host_seconds = thread_seconds() - start;
    if (!r.ok) {
      std::fprintf(stderr, "flydsl-emu-bench: %s\n", r.fault.c_str());
      return false;
    }
    if (r.host_seconds < best.host_seconds) best = r;
  }
  return true;
}

}  // namespace

int main(int argc, char **argv) {
  std::string directory = argc > 1 ? argv[1] : FLYDSL_EMU_BENCH_CODE;
  DispatchResult valu, mfma;
  if (!best_run(directory + "/valu_loop.bin", valu) ||
      !best_run(directory + "/mfma_loop.bin", mfma))
    return 1;
  std::printf("valu  %.1f M wave-instructions/s\n",
              double(valu.wave_instructions) / valu.host_seconds / 1e6);
  std::printf("mfma  %.1f GFLOP/s bf16\n", double(mfma.mfma_flops) / mfma.host_seconds / 1e9);
  return 0;
}
