#include "test/emulator/support/snippet.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "emulator/engine/step.h"

namespace flydsl::emu::test {
namespace {

std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<uint8_t> assemble(const std::string &assembly, const std::string &processor) {
  // Tests run the same text at several SIMD levels.
  static std::map<std::string, std::vector<uint8_t>> known;
  const auto found = known.find(processor + assembly);
  if (found != known.end()) return found->second;
  char directory[] = "/tmp/flydsl-snippet-XXXXXX";
  if (!mkdtemp(directory)) throw std::runtime_error("mkdtemp failed");
  const std::string base = std::string(directory) + "/a";
  std::ofstream(base + ".s") << assembly << "\n";
  const std::string command =
      std::string(FLYDSL_TEST_LLVM_MC) + " -triple=amdgcn-amd-amdhsa -mcpu=" + processor +
      " -filetype=obj -o " + base + ".o " + base + ".s 2> " + base + ".err && " +
      FLYDSL_TEST_LLVM_OBJCOPY + " -O binary -j .text " + base + ".o " + base + ".bin";
  const int status = std::system(command.c_str());
  const std::string code = read_file(base + ".bin"), errors = read_file(base + ".err");
  for (const char *suffix : {".s", ".o", ".bin", ".err"}) unlink((base + suffix).c_str());
  rmdir(directory);
  if (status != 0) throw std::runtime_error("assembling failed:\n" + errors + assembly);
  return known[processor + assembly] = {code.begin(), code.end()};
}

std::vector<Level> levels() {
  std::vector<Level> all;
  for (const Level level : {Level::kBase, Level::kAvx2, Level::kAvx512})
    if (level_supported(level)) all.push_back(level);
  return all;
}

Snippet::Snippet(const std::string &assembly, Level level, const std::string &processor)
    : Snippet(assemble(assembly + "\ns_endpgm\n", processor), level, processor) {}

Snippet::Snippet(const std::vector<uint8_t> &code, Level level, const std::string &processor)
    : code_(code) {
  kernel_.name = "snippet";
  kernel_.program = decode_program_for(level, processor, code_.data(), code_.size());
  kernel_.entry_address = reinterpret_cast<uint64_t>(code_.data());
  storage_.assign(512 * 64 + 16, 0);
  registers_ = reinterpret_cast<uint32_t *>((reinterpret_cast<uint64_t>(storage_.data()) + 63) &
                                            ~uint64_t(63));
  lds_.assign(65536, 0);
  group_.kernel = &kernel_;
  group_.program = kernel_.program.get();
  group_.packet = &packet_;
  memory_.group = &group_;
  wave_ = std::make_unique<Wave>();
  Wave &w = *wave_;
  std::memset(w.s, 0, sizeof w.s);
  w.v = registers_;
  w.base[0] = registers_;
  w.base[1] = group_.program->pool;
  w.ops = group_.program->ops.data();
  w.mode = 0xf0 | 1 << 8 | 1 << 9;
  w.memory = &memory_;
  w.scratch = nullptr;
  w.scratch_bytes = 0;
  w.region_begin = w.region_end = w.wregion_begin = w.wregion_end = 0;
  w.vm_issued = w.copies_pending = 0;
  w.mfma_flops = 0;
  w.wave_in_group = w.hw_id = 0;
  set_exec(~uint64_t(0));
}

void Snippet::set_v(int reg, const std::function<uint32_t(int)> &lane_value) {
  for (int lane = 0; lane < 64; ++lane) v(reg, lane) = lane_value(lane);
}
void Snippet::set_vf(int reg, const std::function<float(int)> &lane_value) {
  for (int lane = 0; lane < 64; ++lane) {
    const float x = lane_value(lane);
    std::memcpy(&v(reg, lane), &x, 4);
  }
}
float Snippet::vf(int reg, int lane) {
  float x;
  std::memcpy(&x, &v(reg, lane), 4);
  return x;
}
void Snippet::set_exec(uint64_t mask) {
  wave_->s[kExec] = uint32_t(mask);
  wave_->s[kExec + 1] = uint32_t(mask >> 32);
}
void Snippet::set_scratch(uint32_t bytes_per_lane) {
  scratch_.assign(size_t(bytes_per_lane) * 64, 0);
  wave_->scratch = scratch_.data();
  wave_->scratch_bytes = bytes_per_lane;
}
void Snippet::allow(const void *begin, size_t bytes, bool writable) {
  const auto address = reinterpret_cast<uint64_t>(begin);
  regions_.push_back({address, address + bytes, writable, "test"});
}

std::string Snippet::run() {
  std::sort(regions_.begin(), regions_.end(),
            [](const Region &x, const Region &y) { return x.begin < y.begin; });
  snapshot_ = std::make_unique<RegionSnapshot>(regions_);
  group_.regions = snapshot_.get();
  Wave &w = *wave_;
  w.lds = lds_.data();
  w.lds_bytes = uint32_t(lds_.size());
  w.pc = 0;
  w.stop = Stop::kNone;
  NoHooks hooks;
  for (int quantum = 0; quantum < 1000; ++quantum) {
    run_wave(w, 10000, hooks);
    if (w.stop == Stop::kEnd) return {};
    if (w.stop == Stop::kFault) return group_.fault;
    if (w.stop == Stop::kWait) land_awaited_copies({&w});
    w.stop = Stop::kNone;
  }
  return "did not end";
}

}  // namespace flydsl::emu::test
