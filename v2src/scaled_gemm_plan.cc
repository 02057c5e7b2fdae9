// Which tiles a scaled_gemm problem is computed with, and how they and parts of K share it.
#include <algorithm>
#include <cmath>

#include "v2src/matrix_check.h"
#include "v2src/parts_of_k.h"
#include "v2src/scaled_gemm.h"

namespace flydsl::scaled_gemm {
namespace {

#define FLYDSL_AOT_VALUE(k) k
constexpr int64_t kGranule = FLYDSL_AOT_SCALED_GEMM_K_GRANULE(FLYDSL_AOT_VALUE);
#undef FLYDSL_AOT_VALUE
constexpr int64_t kLeastPart = 2 * kGranule;  // of K: less is start and end rather than products

int64_t tiles_of(const Problem &problem, int64_t rows, int64_t columns) {
  return divided_up(problem.m, rows) * divided_up(problem.n, columns) * problem.batches;
}

// ---- the model, in clocks of 2.4 GHz (an MI350X; docs/timing-model.md): only ratios matter

constexpr double kMemoryBytes = 2300;  // a clock, all compute units: 70 % of 8 TB/s
constexpr double kPassClocks = 12000;  // of a second kernel
// Of instances for few rows: what a compute unit loads a clock, with one work-group or more; start and end.
constexpr double kCacheBytes = 46, kFewRowsClocks = 7000;
// Of the others: 128 bytes of K of 256 x 256; start and end, of which stores are as long as the tile is large.
constexpr double kSlabClocks = 2048, kTileClocks = 7000, kStoreClocks = 8000;
// Of those of 128 x 128, of which two share a compute unit: 128 bytes of K of one alone, of two.
constexpr double kAloneClocks = 1000, kSharedClocks = 1850;

double clocks_of(const Problem &problem, int64_t rows, int64_t columns, int64_t splits) {
  const bool packed = problem.params->a.dtype == FLYDSL_AOT_E2M1X2;
  const double part =
      static_cast<double>(part_of_k(problem.k, splits, kGranule)) / (packed ? 2 : 1);
  const int64_t tiles = tiles_of(problem, rows, columns) * splits;
  const double share_of_tile = static_cast<double>(rows * columns) / (256 * 256);
  if (rows == 128) {
    const int64_t rounds = divided_up(tiles, int64_t{problem.compute_units} * 2);
    const bool alone = tiles <= problem.compute_units;
    return static_cast<double>(rounds) *
           (part / 128 * (alone ? kAloneClocks : kSharedClocks) +
            (alone ? 1 : 2) * share_of_tile * kStoreClocks + kTileClocks);
  }
  if (!has_parts(columns))
    return static_cast<double>(divided_up(tiles, problem.compute_units)) *
           (share_of_tile * (part / 128 * kSlabClocks + kStoreClocks) + kTileClocks);
  const double share = static_cast<double>(tiles) / static_cast<double>(problem.compute_units);
  const double of_tile = part * static_cast<double>(rows + columns);
  const double memory = static_cast<double>(problem.n) * static_cast<double>(problem.batches) *
                        part * static_cast<double>(splits) / kMemoryBytes;
  const double work = std::max(share, 1.0) * of_tile / kCacheBytes;
  double clocks = std::hypot(work, memory) + kFewRowsClocks;
  if (splits > 1)
    clocks += kPassClocks + 2 * static_cast<double>(bytes_of_parts(problem, splits)) / kMemoryBytes;
  return clocks;
}

}  // namespace

Cost cost_of(const Problem &problem, int64_t tile_rows, int64_t tile_columns) {
  Cost best = {clocks_of(problem, tile_rows, tile_columns, 1), 1};
  if (!has_parts(tile_columns) ||
      tiles_of(problem, tile_rows, tile_columns) >= int64_t{problem.compute_units} * 2)
    return best;
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
  // Each work-group has several tiles.
  plan->grid.grid_x = std::min(plan->grid.grid_x, problem.compute_units * entry.tile[2]);
  plan->grid.grid_y = 1;
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

}  // namespace flydsl::scaled_gemm
