#include "tools/verify/block_scales.h"

#include <utility>

#include "tools/verify/matrix_order.h"
#include "tools/verify/mx_format.h"

namespace flydsl::verify {

flydsl_aot_tensor put_block_scales(OperatorCall &call, const std::string &name,
                                   const BlockScaleOrder &order, int64_t matrices, int64_t rows,
                                   int64_t blocks, const std::vector<uint8_t> &scales) {
  const int64_t count = matrices > 0 ? matrices : 1;
  std::vector<uint8_t> bytes = scales;
  std::vector<int64_t> sizes = {rows, blocks};
  const bool shuffled = order.layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  const bool along_rows = order.along_rows && !shuffled;
  if (shuffled) {
    sizes = {(rows + 31) / 32 * 32, (blocks + 7) / 8 * 8};
    bytes.assign(static_cast<size_t>(count * sizes[0] * sizes[1]), 255);
    size_t i = 0;
    for (int64_t matrix = 0; matrix < count; ++matrix)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t block = 0; block < blocks; ++block)
          bytes[static_cast<size_t>(matrix * sizes[0] * sizes[1] +
                                    shuffled_scale_place(row, block, sizes[1]))] = scales[i++];
  } else if (along_rows) {
    bytes = transposed(bytes, count, rows, blocks);
    std::swap(sizes[0], sizes[1]);
  }
  if (matrices > 0) sizes.insert(sizes.begin(), matrices);
  PlacementRule rule = order.place;
  // Shuffled matrices are dense.
  if (shuffled && rule.kind != PlacementRule::kOffset) rule = {};
  Elements elements(FLYDSL_AOT_E8M0, 0);
  elements.bits.assign(bytes.begin(), bytes.end());
  flydsl_aot_tensor tensor = call.input(name, elements, sizes, rule, matrices > 0 ? 1 : 0).tensor();
  if (along_rows) swap_last_axes(&tensor);
  return tensor;
}

}  // namespace flydsl::verify
