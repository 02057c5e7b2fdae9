// Check "limits": vector registers beyond those that the kernel descriptor asks for. (LDS and
// scratch beyond the declared size are faults without checks.)
#include "emulator/checks/all_checks.h"
#include "emulator/checks/check.h"

namespace flydsl::emu::checks {
namespace {

class Limits : public Check {
 public:
  explicit Limits(const Context &context) {
    // LLVM "User Guide for AMDGPU Backend", Kernel Descriptor, gfx90a and gfx942: COMPUTE_PGM_RSRC1
    // 5:0 counts all vector registers in units of 8, COMPUTE_PGM_RSRC3 5:0 says in units of 4 where
    // the accumulation registers begin.
    total_ = ((context.kernel.compute_pgm_rsrc1 & 63) + 1) * 8;
    const uint32_t begin = ((context.kernel.compute_pgm_rsrc3 & 63) + 1) * 4;
    vectors_ = begin < total_ ? begin : total_;
    accumulators_ = total_ - vectors_;
  }

  void before(Wave &wave, const Op &op, const Instruction &i) override {
    // Most instructions are known to be good from their first run.
    const size_t index = size_t(&op - wave.ops);
    const bool indexed = wave.mode & kModeIndexing;
    if (!indexed && index < good_.size() && good_[index]) return;
    bool good = true;
    for (int n = 0; n < i.write_count; ++n) good &= look(wave, op, i.writes[n]);
    for (int n = 0; n < i.read_count; ++n) good &= look(wave, op, i.reads[n]);
    if (!good || indexed) return;
    if (index >= good_.size()) good_.resize(index + 256);
    good_[index] = true;
  }

 private:
  bool look(Wave &wave, const Op &op, const Registers &r) {
    if (r.first >= kFirstScalar) return true;
    const bool accumulation = r.first >= 256;
    const uint32_t last = r.first % 256 + r.count - 1u;
    const uint32_t limit = accumulation ? accumulators_ : vectors_;
    if (last < limit) return true;
    report("limits", wave, op, -1,
           "uses " + register_name(r.first + r.count - 1) + "; the kernel declares " +
               std::to_string(limit) + (accumulation ? " accumulation" : " vector") +
               " registers (" + std::to_string(total_) + " in all)");
    return false;
  }

  std::vector<bool> good_;  // by operation
  uint32_t total_, vectors_, accumulators_;
};

}  // namespace

std::unique_ptr<Check> make_limits(const Context &context, void *) {
  return std::make_unique<Limits>(context);
}

}  // namespace flydsl::emu::checks
