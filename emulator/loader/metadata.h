// The kernel list in a code object's NT_AMDGPU_METADATA note: MessagePack maps as described in the
// LLVM "User Guide for AMDGPU Backend", sections "Code Object V3 Metadata" to "Code Object V5
// Metadata".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flydsl::emu {

struct KernelArgument {
  std::string value_kind;  // "by_value", "global_buffer", "dynamic_shared_pointer",
                           // "hidden_block_count_x", ...
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;

  // Filled by the runtime, not by the launch's caller.
  bool hidden() const { return value_kind.rfind("hidden_", 0) == 0; }
};

struct KernelMetadata {
  std::string name;
  std::string symbol;  // of the kernel descriptor, "<name>.kd"
  uint32_t kernarg_bytes = 0;
  uint32_t kernarg_align_bytes = 8;
  uint32_t lds_bytes = 0;
  uint32_t private_bytes = 0;
  uint32_t wave_size = 64;
  uint32_t max_workgroup_size = 1024;
  uint32_t vgpr_count = 0;  // architectural and accumulation registers together
  uint32_t sgpr_count = 0;
  uint32_t vgpr_spill_count = 0;
  uint32_t sgpr_spill_count = 0;
  uint32_t required_block[3] = {0, 0, 0};  // 0: any
  std::vector<KernelArgument> arguments;   // inside kernarg_bytes
};

struct CodeObjectMetadata {
  std::string target;  // "amdgcn-amd-amdhsa--gfx950"; empty in code object v3
  std::vector<KernelMetadata> kernels;
};

// False with a reason on anything that is not such a document; reads no byte outside [data, data +
// bytes).
bool parse_metadata(const void *data, size_t bytes, CodeObjectMetadata *metadata,
                    std::string *error);

}  // namespace flydsl::emu
