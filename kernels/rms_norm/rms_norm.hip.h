// Root-mean-square norm of rows. The definition is include/flydsl_aot/rms_norm.h.
#pragma once

#include "common/norm_row.hip.h"
#include "flydsl_aot_generated/rms_norm_kernarg.h"

namespace flydsl::kernels {

template <u32 kThreads, class Tile, RowIn kIn, bool kQuantised>
FLYDSL_DEVICE void rms_norm(const flydsl_aot_rms_norm_kernarg &args) {
  norm_rows<false, kThreads, Tile, kIn, kQuantised>(args);
}

}  // namespace flydsl::kernels
