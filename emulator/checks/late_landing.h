// See late_landing.cc.
#pragma once

#include "emulator/checks/check.h"

namespace flydsl::emu::checks {

std::unique_ptr<Check> make_late_landing(bool random, uint64_t seed);

}  // namespace flydsl::emu::checks
