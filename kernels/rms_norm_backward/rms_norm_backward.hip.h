// The gradients of rms_norm. The definition is include/flydsl_aot/rms_norm_backward.h.
#pragma once

#include "common/norm_backward_held.hip.h"
#include "common/norm_backward_long.hip.h"
#include "common/norm_backward_row.hip.h"
#include "common/norm_backward_totals.hip.h"
#include "flydsl_aot_generated/rms_norm_backward_kernarg.h"

namespace flydsl::kernels {

template <u32 kThreads, class Tile>
FLYDSL_DEVICE void rms_norm_backward_rows(const flydsl_aot_rms_norm_backward_kernarg &args) {
  norm_backward_rows<false, kThreads, Tile>(args);
}

template <u32 kThreads, class Tile, u32 kPlaces>
FLYDSL_DEVICE void rms_norm_backward_held_rows(const flydsl_aot_rms_norm_backward_kernarg &args) {
  norm_backward_held_rows<false, kThreads, Tile, kPlaces>(args);
}

template <u32 kThreads, class Tile>
FLYDSL_DEVICE void rms_norm_backward_sums(const flydsl_aot_rms_norm_backward_kernarg &args) {
  norm_backward_sums<false, kThreads, Tile>(args);
}

template <u32 kThreads, class Tile, u32 kMostRows>
FLYDSL_DEVICE void rms_norm_backward_columns(const flydsl_aot_rms_norm_backward_kernarg &args) {
  norm_backward_columns<false, kThreads, Tile, kMostRows>(args);
}

template <u32 kThreads, u32 kColumns>
FLYDSL_DEVICE void rms_norm_backward_totals(const flydsl_aot_rms_norm_backward_kernarg &args) {
  norm_backward_totals<false, kThreads, kColumns>(args);
}

}  // namespace flydsl::kernels
