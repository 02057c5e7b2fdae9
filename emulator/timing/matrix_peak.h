// The least time that the matrix instructions of a work-group could take: what "share of peak" is of.
#pragma once

#include "emulator/engine/program_impl.h"
#include "emulator/timing/constants.h"
#include "emulator/timing/trace.h"

namespace flydsl::emu::timing {

// Clocks of a compute unit on which every matrix instruction runs at the dense peak of its input
// type; a shape at half rate does not lower the peak.
double ideal_matrix_clocks(const Program &program, const GroupTrace &group,
                           const Constants &constants);

}  // namespace flydsl::emu::timing
