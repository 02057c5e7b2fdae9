// The E8M0 scales of MX operands in device memory (flydsl_aot/scaled_gemm.h says how they may lie).
#pragma once

#include <string>
#include <vector>

#include "flydsl_aot/scaled_gemm.h"
#include "tools/verify/operator_call.h"

namespace flydsl::verify {

struct BlockScaleOrder {
  flydsl_aot_scale_layout layout = FLYDSL_AOT_SCALES_PLAIN;
  bool along_rows = false;  // of plain ones: the rows contiguous
  PlacementRule place;
};

// (rows, blocks) or, with `matrices` above 0, (matrices, rows, blocks). What pads shuffled ones is NaN.
flydsl_aot_tensor put_block_scales(OperatorCall &call, const std::string &name,
                                   const BlockScaleOrder &order, int64_t matrices, int64_t rows,
                                   int64_t blocks, const std::vector<uint8_t> &scales);

}  // namespace flydsl::verify
