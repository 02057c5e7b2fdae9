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

// ---- the model, in clocks of 2.4 GHz (an MI350X; docs/timing-model.md): only ratios matter. Its constants are those with which it
// takes the fastest kernel for most of tuning/cases/gemm.txt: 2 % longer than that on average.

// Products and sums of a compute unit a clock: 2.5 PFLOP/s of 16-bit operands on 256 of them.
double products_a_clock(flydsl_aot_dtype dtype) {
  return is_8bit(dtype) ? 4096 : dtype == FLYDSL_AOT_FP32 ? 128 : 2048;
}
// What a tile has of that: a smaller one reads more from LDS for each product (kernels/gemm/NOTES.md).
double share_of_tile(int64_t rows, int64_t columns) {
  const double needed = 128.0 * static_cast<double>(rows + columns) /
                        (static_cast<double>(rows) * static_cast<double>(columns));
  return 1.0 / (1.0 + 0.24 * std::max(needed - 1.0, 0.0));
}
// Instances for few rows, of which several work-groups share a compute unit and wait for memory.
bool few_rows(int64_t tile_columns) {
  return tile_columns < 64;
}
// What such a tile gets of kCacheBytes: one of 32 or 64 x 16 holds few fragments for the registers it takes.
double share_of_few(int64_t tile_rows, int64_t tile_columns) {
  if (tile_columns == 32) return tile_rows == 32 ? 0.74 : 0.6;
  return tile_rows == 16 ? 1.03 : 0.43;
}
// What a tile's rounds are between those of the average and those of the busiest compute unit.
constexpr double kBusiest = 0.7, kLeastRounds = 0.9;
// So much longer than half of two takes one tile of 128 x 128, of which two work-groups can share a compute unit.
constexpr double kAlone = 1.8;
// The same of instances that have a compute unit for themselves: copies are under way, LDS reads are not hidden.
constexpr double kFarAhead = 1.35;
constexpr double kCacheBytes = 64;     // a compute unit and clock, out of its XCD's cache
constexpr double kMemoryBytes = 2300;  // all of them: 70 % of 8 TB/s
constexpr double kCachedBytes = 250e6, kFromCache = 1.1;  // operands that fit in the 256 MB cache
constexpr double kNarrow = 1.02;                          // those that do not, by 16 columns
constexpr double kTileClocks = 5600;                      // start and end of a tile
constexpr double kFewRows = 2400, kFewTile = 1700;  // of the first one and of each, for few rows
constexpr double kIncomplete = 16500;               // a tile of 128 x 128, row by row
constexpr double kPassClocks = 28000;               // of a second kernel
// Of the first tile: cold code, nothing under way, and stores that nothing hides.
double first_tile(int64_t area) {
  return area <= 128 * 128 ? 14000 : area <= 256 * 128 ? 19600 : 27600;
}

// Tiles of one size, of which `whole` are not in parts and the others in `splits` parts of K each.
struct Shares {
  int64_t rows, columns, groups, tiles, whole, splits;
};

// Work-groups that share a compute unit.
int64_t groups_of_unit(const Shares &of) {
  return of.rows * of.columns <= 128 * 128 && of.groups != 1 ? 2 : 1;
}
// Whether slabs are copied far ahead (codegen/describe/gemm/tiles.py).
bool copies_far_ahead(const Shares &of) {
  return of.rows * of.columns <= 128 * 128 && of.groups == 1;
}

// Rounds of work-groups that have one of `items` each, in the time of one that has a compute unit for itself.
double rounds_of(const Shares &of, int64_t items, int64_t units) {
  if (items == 0) return 0;
  if (few_rows(of.columns))
    return std::max(kLeastRounds,
                    (1 - kBusiest) * static_cast<double>(items) / static_cast<double>(units) +
                        kBusiest * static_cast<double>(divided_up(items, units)));
  const int64_t groups = groups_of_unit(of);
  if (items <= units && groups > 1) return kAlone;
  return static_cast<double>(divided_up(items, units * groups) * groups) *
         (copies_far_ahead(of) ? kFarAhead : 1.0);
}

uint64_t bytes_of_sums(const Problem &problem, const Shares &of) {
  if (of.whole == 0) return bytes_of_parts(problem, of.splits);
  return static_cast<uint64_t>(of.tiles - of.whole) * static_cast<uint64_t>(of.splits) *
         static_cast<uint64_t>(of.rows * of.columns) * sizeof(float);
}

Cost clocks_of(const Problem &problem, const Shares &of) {
  const double bytes = static_cast<double>(dtype_bytes(problem.a.tensor->dtype));
  const double k = static_cast<double>(problem.k);
  const double part = static_cast<double>(part_of_k(problem.k, of.splits, kGranule));
  const double area = static_cast<double>(of.rows) * static_cast<double>(of.columns);
  const int64_t items = (of.tiles - of.whole) * of.splits;
  const bool few = few_rows(of.columns);
  const int64_t units = problem.compute_units;
  const double clocks_of_k = std::max(
      area / products_a_clock(problem.a.tensor->dtype) / share_of_tile(of.rows, of.columns),
      static_cast<double>(of.rows + of.columns) * bytes / kCacheBytes);
  const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n);
  const double batches = static_cast<double>(problem.batches);
  const double read = batches * (m + n) * k * bytes;
  const double memory =
      read / kMemoryBytes *
      (read < kCachedBytes ? 1 / kFromCache
       : of.columns == 16  ? kNarrow
                           : 1.0) *
      // fewer compute units than all cannot ask for so much
      std::max(1.0, static_cast<double>(units) / static_cast<double>(of.whole + items) / 2);
  const double around = few ? kFewTile : kTileClocks;
  const double work = (rounds_of(of, of.whole, units) * (k * clocks_of_k + around) +
                       rounds_of(of, items, units) * (part * clocks_of_k + around)) /
                      (few ? share_of_few(of.rows, of.columns) : 1.0);
  const bool whole = problem.m % of.rows == 0 && problem.n % of.columns == 0;
  const double first =
      few ? kFewRows
          : first_tile(of.rows * of.columns) + (whole ? 0 : kIncomplete * area / (128 * 128));
  // With few work-groups on a compute unit neither hides the other completely, unless slabs are copied far ahead.
  double clocks =
      first + (few                    ? std::max(work, memory)
               : copies_far_ahead(of) ? std::sqrt(std::hypot(work * work, memory * memory))
                                      : std::hypot(work, memory));
  if (of.splits > 1)
    clocks += kPassClocks + static_cast<double>(bytes_of_sums(problem, of)) / kMemoryBytes;
  return {clocks, work, of.splits, of.whole};
}

// Whether K divides into so many parts, none of them too short or too many.
bool divides(const Problem &problem, int64_t splits) {
  return divided_up(problem.k, part_of_k(problem.k, splits, kGranule)) == splits;
}

}  // namespace

Cost cost_of(const Problem &problem, int64_t tile_rows, int64_t tile_columns, int64_t groups) {
  Shares of{tile_rows, tile_columns, groups, 0, 0, 1};
  of.tiles =
      divided_up(problem.m, tile_rows) * divided_up(problem.n, tile_columns) * problem.batches;
  Cost best = clocks_of(problem, of);
  const auto try_parts = [&] {
    for (of.splits = 2; of.splits <= std::min(kMostParts, problem.k / kLeastPart); ++of.splits) {
      if (!divides(problem, of.splits)) continue;
      if (bytes_of_sums(problem, of) > kMostWorkspaceBytes) break;
      const Cost cost = clocks_of(problem, of);
      if (cost.clocks < best.clocks) best = cost;
    }
  };
  if (of.tiles < int64_t{problem.compute_units} * 2) try_parts();
  const int64_t round = int64_t{problem.compute_units} * groups_of_unit(of);
  of.whole = of.tiles / round * round;
  if (groups > 0 && of.whole > 0 && of.whole < of.tiles) try_parts();
  return best;
}

Status plan_of(const Problem &problem, const archive::Entry &entry, Plan *plan) {
  plan->row_tiles = divided_up(problem.m, entry.tile[0]);
  plan->column_tiles = divided_up(problem.n, entry.tile[1]);
  plan->tile_rows = entry.tile[0];
  plan->tile_columns = entry.tile[1];
  const int64_t tiles = plan->row_tiles * plan->column_tiles * problem.batches;
  const Cost cost = cost_of(problem, plan->tile_rows, plan->tile_columns, entry.tile[2]);
  plan->splits = cost.splits;
  plan->split_k = part_of_k(problem.k, plan->splits, kGranule);
  plan->whole_tiles = cost.whole_tiles;
  plan->part_tiles = cost.whole_tiles == 0 ? 0 : tiles - cost.whole_tiles;
  plan->items = cost.whole_tiles + (tiles - cost.whole_tiles) * cost.splits;
  plan->workspace_bytes = bytes_of_sums(
      problem,
      {plan->tile_rows, plan->tile_columns, entry.tile[2], tiles, cost.whole_tiles, cost.splits});
  if (plan->splits == 1)
    plan->second_pass_blocks = 0;
  else if (plan->whole_tiles == 0)
    plan->second_pass_blocks = blocks_of(problem);
  else
    plan->second_pass_blocks =
        plan->part_tiles * plan->tile_rows * plan->tile_columns / kElementsOfBlock;
  FLYDSL_RETURN_IF_ERROR(linear_tiles(plan->items, 1, 1, 1, &plan->grid));
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
