// A launch with checks on. Its kernel descriptor declares 128 vector and 128 accumulation registers.
#pragma once

#include <gmock/gmock.h>

#include "test/emulator/support/launch.h"

namespace flydsl::emu::test {

class CheckLaunch : public Launch {
 protected:
  // The report of `check` for the kernel; empty when it passes.
  std::string fault_of(const char *check, const std::string &assembly) {
    build(assembly);
    declare_registers(128, 128);
    dispatch_.block[0] = work_items_;
    options_.checks = check;
    return run(1).fault;
  }
  void declare_registers(uint32_t vectors, uint32_t accumulators) {
    kernel_.compute_pgm_rsrc1 =
        (kernel_.compute_pgm_rsrc1 & ~63u) | ((vectors + accumulators) / 8 - 1);
    kernel_.compute_pgm_rsrc3 = vectors / 4 - 1;
  }
  uint32_t work_items_ = 64;
};

}  // namespace flydsl::emu::test
