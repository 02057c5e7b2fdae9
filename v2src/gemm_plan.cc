// How tiles and parts of K share a gemm problem.
#include <algorithm>
#include <cmath>

#include "v2src/gemm.h"
#include "v2src/matrix_check.h"
#include "v2src/parts_of_k.h"

namespace flydsl::gemm {
namespace {

#define FLYDSL_AOT_VALUE(k) k
constexpr int64_t kGranule = FLYDSL_AOT_GEMM_K_GRANULE(FLYDSL_AOT_VALUE);
#undef FLYDSL_AOT_VALUE
constexpr int64_t kLeastPart = 2 * kGranule;  // of K: less is start and end rather than products

// ---- the model, in clocks of 2.4 GHz (an MI350X; docs/timing-model.md): only ratios matter

// Products and sums of a compute unit a clock: 2.5 PFLOP/s of 16-bit operands on 256 of them.
double products_a_clock(flydsl_aot_dtype dtype) {
  return is_8bit(dtype) ? 4096 : dtype == FLYDSL_AOT_FP32 ? 128 : 2048;
}
// What a tile has of that: a smaller one reads more from LDS for each product (kernels/gemm/NOTES.md).
double share_of_tile(int64_t rows, int64_t columns) {
  const double needed = 128.0 * static_cast<double>(rows + columns) /
                        (static_cast<double>(rows) * static_cast<double>(columns));
  return 1.0 / (1.0 + 0.12 * std::max(needed - 1.0, 0.0));
}
// Instances for few rows, of which several work-groups share a compute unit and wait for memory.
bool few_rows(int64_t tile_columns) {
  return tile_columns < 64;
}
// How many of the others share one.
int64_t groups_of_unit(int64_t tile_rows, int64_t tile_columns) {
  return tile_rows * tile_columns <= 128 * 128 ? 2 : 1;
}
// So much longer than half of two takes one of those alone.
constexpr double kAlone = 1.4;
constexpr double kCacheBytes = 64;     // a compute unit and clock, out of its XCD's cache
constexpr double kMemoryBytes = 2300;  // all of them: 70 % of 8 TB/s
constexpr double kTileClocks = 4000;   // start and end of a tile
constexpr double kPassClocks = 12000;  // of a second kernel

double clocks_of(const Problem &problem, int64_t tile_rows, int64_t tile_columns, int64_t splits) {
  const double bytes = static_cast<double>(flydsl_aot_dtype_bytes(problem.a.tensor->dtype));
  const double part = static_cast<double>(part_of_k(problem.k, splits, kGranule));
  const double area = static_cast<double>(tile_rows) * static_cast<double>(tile_columns);
  const int64_t tiles = divided_up(problem.m, tile_rows) * divided_up(problem.n, tile_columns) *
                        problem.batches * splits;
  const bool few = few_rows(tile_columns);
  const int64_t units = problem.compute_units;
  const int64_t groups = groups_of_unit(tile_rows, tile_columns);
  const double rounds = few ? std::max(1.0, static_cast<double>(tiles) / static_cast<double>(units))
                        : tiles <= units
                            ? (groups > 1 ? kAlone : 1.0)
                            : static_cast<double>(divided_up(tiles, units * groups) * groups);
  const double clocks_of_k = std::max(
      area / products_a_clock(problem.a.tensor->dtype) / share_of_tile(tile_rows, tile_columns),
      static_cast<double>(tile_rows + tile_columns) * bytes / kCacheBytes);
  const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n);
  const double batches = static_cast<double>(problem.batches);
  const double memory =
      batches * (m + n) * static_cast<double>(problem.k) * bytes / kMemoryBytes *
      // fewer compute units than all cannot ask for so much
      std::max(1.0, static_cast<double>(problem.compute_units) / static_cast<double>(tiles) / 2);
  const double work = rounds * (part * clocks_of_k + (few ? 0 : kTileClocks));
  // With few work-groups on a compute unit neither hides the other completely.
  double clocks = (few ? std::max(work, memory) : std::hypot(work, memory)) + kTileClocks;
  if (splits > 1)
    clocks += kPassClocks + 2 * static_cast<double>(bytes_of_parts(problem, splits)) / kMemoryBytes;
  return clocks;
}

}  // namespace

Cost cost_of(const Problem &problem, int64_t tile_rows, int64_t tile_columns) {
  Cost best = {clocks_of(problem, tile_rows, tile_columns, 1), 1};
  const int64_t tiles =
      divided_up(problem.m, tile_rows) * divided_up(problem.n, tile_columns) * problem.batches;
  if (tiles >= int64_t{problem.compute_units} * 2) return best;
  for (int64_t splits = 2; splits <= std::min(kMostParts, problem.k / kLeastPart); ++splits) {
    // Parts may be so long that fewer of them are enough.
    if (divided_up(problem.k, part_of_k(problem.k, splits, kGranule)) != splits) continue;
    if (bytes_of_parts(problem, splits) > kMostWorkspaceBytes) break;
    const double clocks = clocks_of(problem, tile_rows, tile_columns, splits);
    if (clocks < best.clocks) best = {clocks, splits};
  }
  return best;
}

Status plan_of(const Problem &problem, const archive::Entry &entry, Plan *plan) {
  plan->row_tiles = divided_up(problem.m, entry.tile[0]);
  plan->column_tiles = divided_up(problem.n, entry.tile[1]);
  plan->splits = cost_of(problem, entry.tile[0], entry.tile[1]).splits;
  plan->split_k = part_of_k(problem.k, plan->splits, kGranule);
  plan->workspace_bytes = bytes_of_parts(problem, plan->splits);
  plan->second_pass_blocks = plan->splits == 1 ? 0 : blocks_of(problem);
  FLYDSL_RETURN_IF_ERROR(linear_tiles(plan->row_tiles * plan->column_tiles,
                                      problem.batches * plan->splits, 1, 1, &plan->grid));
  if (entry.tile[2] == 0) return {};
  plan->grid.grid_x = std::min(plan->grid.grid_x, problem.compute_units * entry.tile[2]);
  plan->grid.grid_y = 1;  // each work-group has several tiles
  return {};
}

Status set_second_pass(const Plan &plan, const archive::Entry &entry, Kernarg *kernarg,
                       LinearTiles *grid) {
  FLYDSL_RETURN_IF_ERROR(linear_tiles(plan.second_pass_blocks, 1, 1,
                                      entry.tile[0] / static_cast<uint32_t>(kElementsOfBlock),
                                      grid));
  kernarg->tiles = static_cast<uint32_t>(plan.second_pass_blocks);
  kernarg->grid_x = grid->grid_x;
  return {};
}

}  // namespace flydsl::gemm
