// Runs a few assembled instructions as one wave with registers, LDS and memory set by the test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/engine/memory.h"
#include "emulator/engine/program_impl.h"
#include "emulator/isa/table.h"

namespace flydsl::emu::test {

// Machine code of `assembly`, through llvm-mc. Throws std::runtime_error with its messages.
std::vector<uint8_t> assemble(const std::string &assembly, const std::string &processor = "gfx950");

// The SIMD levels this machine can run.
std::vector<Level> levels();

class Snippet {
 public:
  // s_endpgm is appended. All registers are 0 at first, EXEC is full, MODE is the default of
  // compiled code.
  explicit Snippet(const std::string &assembly, Level level = host_level(),
                   const std::string &processor = "gfx950");
  Snippet(const std::vector<uint8_t> &code, Level level, const std::string &processor);

  uint32_t &v(int reg, int lane) { return registers_[size_t(reg) * 64 + size_t(lane)]; }
  uint32_t &a(int reg, int lane) { return v(256 + reg, lane); }
  uint32_t &s(int reg) { return wave_->s[reg]; }
  void set_v(int reg, const std::function<uint32_t(int)> &lane_value);
  void set_vf(int reg, const std::function<float(int)> &lane_value);
  float vf(int reg, int lane);
  void set_exec(uint64_t mask);
  uint64_t vcc() const { return wave_->s[kVcc] | uint64_t(wave_->s[kVcc + 1]) << 32; }
  uint64_t s64(int reg) const { return wave_->s[reg] | uint64_t(wave_->s[reg + 1]) << 32; }
  Wave &wave() { return *wave_; }
  uint64_t code_address() const { return kernel_.entry_address; }
  std::vector<uint8_t> &lds() { return lds_; }
  void set_scratch(uint32_t bytes_per_lane);
  void set_memory_model(MemoryModel model) { group_.model = model; }
  void allow(const void *begin, size_t bytes, bool writable = true);

  // Runs to the end or a fault; returns the fault report, empty when there was none.
  std::string run();

 private:
  std::vector<uint8_t> code_;
  Kernel kernel_;
  DispatchPacket packet_;
  std::vector<Region> regions_;
  std::unique_ptr<RegionSnapshot> snapshot_;
  Group group_;
  Memory memory_;
  std::vector<uint8_t> lds_, scratch_;
  std::vector<uint32_t> storage_;
  uint32_t *registers_ = nullptr;
  std::unique_ptr<Wave> wave_;
};

}  // namespace flydsl::emu::test
