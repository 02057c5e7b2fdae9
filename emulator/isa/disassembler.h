// LLVM's C disassembler for one AMDGPU processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace flydsl::emu {

class Disassembler {
 public:
  // `processor` such as "gfx950". ok() is false when LLVM does not know it.
  explicit Disassembler(const std::string &processor);
  ~Disassembler();
  Disassembler(const Disassembler &) = delete;
  Disassembler &operator=(const Disassembler &) = delete;

  bool ok() const { return context_ != nullptr; }
  // Text of the instruction at `bytes`; returns its size in bytes, 0 when it does not decode.
  size_t next(const uint8_t *bytes, size_t size, std::string &text);

 private:
  void *context_ = nullptr;
};

}  // namespace flydsl::emu
