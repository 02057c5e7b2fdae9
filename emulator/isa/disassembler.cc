#include "emulator/isa/disassembler.h"

#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <cstring>
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
  // LLVM 22 reads freed stack when a literal is cut off by the end of the bytes
  // (AMDGPUDisassembler::decodeLiteralConstant keeps a Twine): it gets zeros behind them instead, and
  // an instruction that needed some of these is none.
  constexpr size_t kLongest = 32;
  uint8_t padded[kLongest] = {};
  const bool near_end = size < kLongest;
  if (near_end) std::memcpy(padded, bytes, size);
  char buffer[512];
  const size_t n = LLVMDisasmInstruction(context_, near_end ? padded : const_cast<uint8_t *>(bytes),
                                         near_end ? kLongest : size, 0, buffer, sizeof buffer);
  const bool whole = n != 0 && n <= size;
  text = whole ? buffer : "";
  return whole ? n : 0;
}

}  // namespace flydsl::emu
