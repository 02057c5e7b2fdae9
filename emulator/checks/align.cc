// Check "align". The HSA run time puts gfx9 and later into unaligned mode (SH_MEM_CONFIG; LLVM
// FeatureUnalignedAccessMode), where plain loads and stores of global memory, scratch and LDS may
// have any address. What still needs its own alignment: atomics, the two elements of DS read2 and
// write2, transpose reads, the LDS side of copies (M0 counts dwords), scalar loads.
#include "emulator/checks/all_checks.h"
#include "emulator/checks/check.h"

namespace flydsl::emu::checks {
namespace {

class Align : public Check {
 public:
  void access(Wave &wave, const Op &op, const Instruction &i, const Access &a) override {
    const uint32_t alignment = required(i, a);
    if (alignment == 1) return;
    for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      if (a.address[lane] % alignment)
        return report("align", wave, op, a.scalar ? -1 : lane,
                      place(a.space) + hex(a.address[lane]) + " is not a multiple of " +
                          std::to_string(alignment));
    }
  }
  void copy_issued(Wave &wave, const Op &op, const Instruction &, const Copy &c) override {
    const uint32_t m0_bits = wave.s[kM0] & 3;  // the copy ignores them
    if ((c.lds_offset | m0_bits) % 4)
      report("align", wave, op, -1,
             place(Space::kLds) + hex(c.lds_offset | m0_bits) + " is not a multiple of 4");
  }

 private:
  static uint32_t required(const Instruction &i, const Access &a) {
    if (a.scalar) return 4;
    if (i.has(kAtomic | kTwoAddresses)) return a.bytes;
    if (i.mnemonic.find("_tr_") != std::string_view::npos) return a.bytes == 12 ? 4 : a.bytes;
    return 1;
  }
  static std::string place(Space space) {
    return space == Space::kLds       ? "LDS address "
           : space == Space::kScratch ? "scratch address "
                                      : "address ";
  }
};

}  // namespace

std::unique_ptr<Check> make_align(const Context &, void *) {
  return std::make_unique<Align>();
}

}  // namespace flydsl::emu::checks
