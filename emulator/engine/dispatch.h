// Running one kernel launch to its end: the boundary between the engine and everything above it
// (HIP layer, tests).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "emulator/memory/address_space.h"

namespace flydsl::emu {

class Program;  // decoded machine code, engine/program.h

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

struct DispatchOptions {
  unsigned threads =
      0;  // host threads for work-groups; 0: all cores (FLYDSL_EMU_THREADS overrides)
};

struct DispatchResult {
  bool ok = true;
  // When not ok: kernel, work-group, wave, lane, address of the instruction, its text, and what it
  // did, e.g. "attention_forward_...: work-group (3,0,0) wave 1 lane 5 at 0x1f40
  // `global_load_dwordx4 v[0:3], v[4:5], off`:
  //  reads 16 bytes at 0x7f.., 8 bytes past the end of the hipMalloc region [0x7f.., 0x7f..)".
  std::string fault;
  uint64_t wave_instructions = 0;
  uint64_t mfma_flops = 0;
  double host_seconds = 0;
};

DispatchResult run_dispatch(const Kernel &kernel, const Dispatch &dispatch,
                            const RegionSnapshot &memory, const DispatchOptions &options = {});

}  // namespace flydsl::emu
