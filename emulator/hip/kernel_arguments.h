// The kernel-argument segment of one launch: explicit arguments from the caller, hidden ones filled
// in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "emulator/engine/dispatch.h"
#include "emulator/hip/hip_abi.h"
#include "emulator/loader/code_object.h"

namespace flydsl::emu::hip {

// Owns the segment's memory and keeps it a (read-only) region of the AddressSpace.
class KernelArguments {
 public:
  explicit KernelArguments(const KernelMetadata &kernel);
  ~KernelArguments();
  KernelArguments(const KernelArguments &) = delete;
  KernelArguments &operator=(const KernelArguments &) = delete;

  // One of the two forms of hipModuleLaunchKernel; hipErrorInvalidValue after fail() when neither
  // holds what the kernel needs.
  hipError_t set_explicit(void *const *parameters, void *const *extra);
  // LLVM User Guide for AMDGPU Backend, "Code Object V5 Metadata", ".value_kind" of hidden
  // arguments. Buffers that the emulator does not offer (printf, hostcall, heap, ...) stay null.
  void set_hidden(const Dispatch &dispatch);

  const void *data() const { return memory_.get(); }

 private:
  hipError_t set_from_parameters(void *const *parameters);
  hipError_t set_from_buffer(void *const *extra);

  struct Free {
    void operator()(void *memory) const;
  };

  const KernelMetadata &kernel_;
  uint32_t explicit_bytes_ = 0;  // end of the last explicit argument
  size_t segment_bytes_ = 0;
  std::unique_ptr<char, Free> memory_;
};

}  // namespace flydsl::emu::hip
