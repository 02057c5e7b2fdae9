// Layer norm of rows. The definition is include/flydsl_aot/layer_norm.h.
#pragma once

#include "common/norm_row.hip.h"
#include "flydsl_aot_generated/layer_norm_kernarg.h"

namespace flydsl::kernels {

template <u32 kThreads, class Tile, RowIn kIn, bool kQuantised>
FLYDSL_DEVICE void layer_norm(const flydsl_aot_layer_norm_kernarg &args) {
  norm_rows<true, kThreads, Tile, kIn, kQuantised>(args);
}

}  // namespace flydsl::kernels
