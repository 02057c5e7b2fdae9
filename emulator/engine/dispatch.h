// Running one kernel launch to its end: the boundary between the engine and everything above it
// (HIP layer, tests).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/memory/address_space.h"

namespace flydsl::emu {

class Program;  // decoded machine code, engine/program.h
namespace checks {
class Check;
struct Context;
}  // namespace checks

// A kernel as its code object describes it. Field meanings: LLVM "User Guide for AMDGPU Backend",
// Kernel Descriptor.
struct Kernel {
  std::string name;
  std::shared_ptr<const Program> program;
  uint64_t entry_address = 0;  // of the first instruction, at the load address
  uint32_t compute_pgm_rsrc1 = 0;
  uint32_t compute_pgm_rsrc2 = 0;
  uint32_t compute_pgm_rsrc3 = 0;
  uint16_t kernel_code_properties = 0;
  uint16_t kernarg_preload = 0;
  uint32_t lds_bytes = 0;      // static
  uint32_t private_bytes = 0;  // scratch per work-item
  uint32_t kernarg_bytes = 0;
  uint32_t wave_size = 64;
  uint32_t max_workgroup_size = 1024;
};

struct Dispatch {
  uint32_t grid[3] = {1, 1, 1};   // work-groups
  uint32_t block[3] = {1, 1, 1};  // work-items per work-group
  uint32_t dynamic_lds_bytes = 0;
  const void *kernarg = nullptr;  // inside a region of the address space
};

// When asynchronous results (loads to registers, copies to LDS) arrive; each is a behaviour that
// the hardware may show. README.md has the words of FLYDSL_EMU_MEMORY.
enum class MemoryModel : uint8_t {
  kNominal,  // copies to LDS take as long as the work-group can go on without them, loads no time
  kStrict,   // destinations hold a pattern from issue to the latest moment the counters allow
  kRandom,   // arrive at random moments; waves and work-groups run in random order
};

struct DispatchOptions {
  // A host thread for every work-group, so that they can wait for each other (cooperative launch).
  bool all_groups_at_once = false;
  unsigned threads =
      0;  // host threads for work-groups; 0: all cores (FLYDSL_EMU_THREADS overrides)
  // One work-group after the other, whatever FLYDSL_EMU_THREADS says.
  bool one_at_a_time = false;
  // Unset: what FLYDSL_EMU_MEMORY says.
  std::optional<MemoryModel> memory = {};
  uint64_t seed = 1;  // of MemoryModel::kRandom
  // Unset: what FLYDSL_EMU_CHECKS and FLYDSL_EMU_CHECKS_WARN say; the same words.
  std::optional<std::string> checks = {};
  std::optional<bool> checks_warn = {};
  // Only these work-groups run, in this order (linear index, x fastest); null: all.
  const std::vector<uint64_t> *groups = nullptr;
  // Makes one more check for each host thread, which sees every instruction; null: none.
  std::function<std::unique_ptr<checks::Check>(const checks::Context &)> recorder = {};
};

struct DispatchResult {
  bool ok = true;
  // When not ok: kernel, work-group, wave, lane, address of the instruction, its text, and what it
  // did, e.g. "attention_forward_...: work-group (3,0,0) wave 1 lane 5 at 0x1f40
  // `global_load_dwordx4 v[0:3], v[4:5], off`:
  //  reads 16 bytes at 0x7f.., 8 bytes past the end of the hipMalloc region [0x7f.., 0x7f..)".
  std::string fault;
  std::vector<std::string> warnings;  // what checks found while they only warn
  uint64_t wave_instructions = 0;
  uint64_t mfma_flops = 0;
  double host_seconds = 0;
};

DispatchResult run_dispatch(const Kernel &kernel, const Dispatch &dispatch,
                            const RegionSnapshot &memory, const DispatchOptions &options = {});

}  // namespace flydsl::emu
