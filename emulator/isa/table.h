// Look-up of instructions by mnemonic.
#pragma once

#include <string_view>

#include "emulator/isa/row.h"

namespace flydsl::emu {

enum class Level { kBase, kAvx2, kAvx512 };

// The best level this processor runs, or the one FLYDSL_EMU_ISA=base|avx2|avx512 names if it runs
// it.
Level host_level();
bool level_supported(Level level);

struct Found {
  const Row *row = nullptr;
  bool integer_family = false;  // arithmetic that does not look at the host's floating-point state
};

// `mnemonic` without encoding suffix.
Found find_row(Level level, std::string_view mnemonic);

}  // namespace flydsl::emu
