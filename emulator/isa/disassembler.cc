#include "emulator/isa/disassembler.h"

#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <mutex>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo(void);
void LLVMInitializeAMDGPUTargetMC(void);
void LLVMInitializeAMDGPUDisassembler(void);
}

namespace flydsl::emu {

Disassembler::Disassembler(const std::string &processor) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  context_ =
      LLVMCreateDisasmCPU("amdgcn-amd-amdhsa", processor.c_str(), nullptr, 0, nullptr, nullptr);
}

Disassembler::~Disassembler() {
  if (context_) LLVMDisasmDispose(context_);
}

size_t Disassembler::next(const uint8_t *bytes, size_t size, std::string &text) {
  char buffer[512];
  const size_t n =
      LLVMDisasmInstruction(context_, const_cast<uint8_t *>(bytes), size, 0, buffer, sizeof buffer);
  text = n ? buffer : "";
  return n;
}

}  // namespace flydsl::emu
