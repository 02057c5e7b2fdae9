// A checked grouped_gemm problem as what selection looks up, and its kernel arguments (codegen/describe/grouped_gemm.py).
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "v2src/attention_arguments.h"
#include "v2src/attention_check.h"
#include "v2src/grouped_gemm.h"
#include "v2src/insertion_sort.h"
#include "v2src/tensor_check.h"

namespace flydsl::grouped_gemm {
namespace {

#define FLYDSL_AOT_AXES(none, rows, columns, k) \
  { none, rows, columns, k }
constexpr uint32_t kAxes[] = FLYDSL_AOT_GROUPED_GEMM_AXES(FLYDSL_AOT_AXES);
#undef FLYDSL_AOT_AXES
static_assert(kAxes[0] == static_cast<uint32_t>(Axis::kNone) &&
              kAxes[1] == static_cast<uint32_t>(Axis::kRows) &&
              kAxes[2] == static_cast<uint32_t>(Axis::kColumns) &&
              kAxes[3] == static_cast<uint32_t>(Axis::kK));

#define FLYDSL_AOT_LAYOUTS(kk, kr, rr) \
  { kk, kr, rr }
constexpr uint32_t kLayouts[] = FLYDSL_AOT_GROUPED_GEMM_LAYOUTS(FLYDSL_AOT_LAYOUTS);
#undef FLYDSL_AOT_LAYOUTS

struct TileKind {
  uint64_t number;
  int64_t rows, columns, resident;  // work-groups a compute unit
  uint64_t layouts;                 // a bit 1 << layout for each that has an instance
  bool mx;                          // MXFP8 has one
};
#define FLYDSL_AOT_TILE(number, rows, columns, resident, layouts, mx) \
  {number, rows, columns, resident, layouts, mx != 0},
constexpr TileKind kTiles[] = {FLYDSL_AOT_GROUPED_GEMM_TILES(FLYDSL_AOT_TILE)};
#undef FLYDSL_AOT_TILE

constexpr const TileKind &kSmallTile = kTiles[2];
static_assert(kSmallTile.rows == 128 && kSmallTile.columns == 128);

// Of an MI350X; for queries without a device.
constexpr uint32_t kComputeUnitsWithoutDevice = 256;

int64_t divided_up(int64_t value, int64_t by) {
  return value / by + (value % by != 0);
}

// Strides of an operand whose last two axes are a matrix.
void set_strides(const flydsl_aot_tensor &tensor, int64_t *group, int64_t *row, int64_t *column) {
  const int first = tensor.rank - 2;
  *group = first == 1 ? walked_stride(tensor, 0) : 0;
  *row = walked_stride(tensor, first);
  *column = walked_stride(tensor, first + 1);
}

// Whether copies to LDS can take an operand whose contiguous axis is K, or the other one. `rows` is the place of that other one, `k`
// the place of K.
bool is_contiguous(const flydsl_aot_tensor &tensor, int contiguous, int other, bool in_eights) {
  constexpr int64_t kMostTileRows = 512, kMostTileBytes = int64_t{1} << 31;
  return walked_stride(tensor, contiguous) <= 1 &&
         (tensor.sizes[contiguous] <= 1 || tensor.strides[contiguous] == 1) &&
         (!in_eights || tensor.sizes[contiguous] % 8 == 0) &&
         walked_stride(tensor, other) < kMostTileBytes / kMostTileRows / 2;
}

// The layout of fast instances, or none. Where groups begin anywhere on a contiguous axis, copies are not aligned.
bool layout_of(const Params &params, Axis axis, uint64_t *layout) {
  const flydsl_aot_tensor &a = params.a, &b = params.b;
  const int a_m = a.rank - 2, a_k = a.rank - 1, b_k = b.rank - 2, b_n = b.rank - 1;
  const bool a_by_k = is_contiguous(a, a_k, a_m, false), a_by_m = is_contiguous(a, a_m, a_k, true);
  const bool b_by_k = is_contiguous(b, b_k, b_n, false), b_by_n = is_contiguous(b, b_n, b_k, true);
  const bool k_is_cut = axis == Axis::kK;
  if (a_by_k && b_by_k && !k_is_cut)
    *layout = kLayouts[0];
  else if (a_by_k && b_by_n && !k_is_cut && axis != Axis::kColumns)
    *layout = kLayouts[1];
  else if (a_by_m && b_by_n && axis != Axis::kRows && axis != Axis::kColumns)
    *layout = kLayouts[2];
  else
    return false;
  return true;
}

bool is_shuffled(const Params &params) {
  return params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
}

// From row to row of scales; shuffled: all of a row.
int64_t scale_row_bytes(const flydsl_aot_tensor &scale, bool shuffled) {
  return shuffled ? scale.sizes[scale.rank - 1] : walked_stride(scale, scale.rank - 2);
}

// Whether fast instances take MXFP8 operands, whatever their alignment: K contiguous and in whole slabs (with plain scales of
// `whole_plain`), offsets inside a tile within 31 bits. Shuffled scales are those of 32 rows, whose columns no group may cut.
bool is_fast_mx(const Params &params, const Problem &problem, int64_t whole_plain) {
  const bool shuffled = is_shuffled(params);
  if (problem.axis == Axis::kK || (shuffled && problem.axis == Axis::kColumns)) return false;
  if (problem.k == 0 || problem.k % (shuffled ? 128 : whole_plain) != 0) return false;
  constexpr int64_t kMostRowBytes = int64_t{1} << 22;
  const flydsl_aot_tensor &a = params.a, &b = params.b;
  for (const flydsl_aot_tensor *scale : {&params.a_scale, &params.b_scale}) {
    if (scale_row_bytes(*scale, shuffled) >= kMostRowBytes) return false;
    if (!shuffled && scale->strides[scale->rank - 1] != 1) return false;
  }
  return a.strides[a.rank - 1] == 1 && b.strides[b.rank - 2] == 1 &&
         walked_stride(a, a.rank - 2) < kMostRowBytes &&
         walked_stride(b, b.rank - 1) < kMostRowBytes;
}

// Of what is copied in pieces of 16 bytes, or of 4 where scales are.
uint64_t alignment_of(const Params &params) {
  if (!has_scales(params)) return align_bytes({&params.a, &params.b});
  uint64_t mask = 4096;  // more alignment than that is not told apart
  for (const flydsl_aot_tensor *tensor : {&params.a, &params.b}) mask |= alignment_mask(*tensor);
  for (const flydsl_aot_tensor *scale : {&params.a_scale, &params.b_scale})
    mask |= alignment_mask(*scale) * 4;
  return mask & (~mask + 1);
}

void set_scale(const flydsl_aot_tensor &scale, bool shuffled, const void **data, int64_t *group,
               int64_t *row, int64_t *block) {
  *data = scale.data;
  set_strides(scale, group, row, block);
  if (!shuffled) return;
  *row = scale_row_bytes(scale, true);
  *block = 1;
}

// Tiles of groups of unlike sizes, which end half way in their last tile on the average.
double tiles_of(const Problem &problem, const TileKind &tile) {
  const auto cut = [&](Axis axis, int64_t size, int64_t of_tile) {
    if (problem.axis != axis) return static_cast<double>(divided_up(size, of_tile));
    const auto groups = static_cast<double>(std::clamp<int64_t>(size, 1, problem.groups));
    const double tiles = static_cast<double>(size) / static_cast<double>(of_tile);
    return problem.groups > 1 ? std::max(groups, tiles + groups / 2) : std::ceil(tiles);
  };
  const bool shares_d = problem.axis == Axis::kRows || problem.axis == Axis::kColumns;
  return (shares_d ? 1.0 : static_cast<double>(problem.groups)) *
         cut(Axis::kRows, problem.m, tile.rows) * cut(Axis::kColumns, problem.n, tile.columns);
}

bool is_for_few_rows(const TileKind &tile) {
  return tile.columns == 16;
}

// Rows a group on the average: their sizes only the device knows.
int64_t rows_of_group(const Problem &problem) {
  const bool shared = problem.axis == Axis::kRows && problem.groups > 1;
  return shared ? divided_up(problem.m, std::min(problem.groups, problem.m)) : problem.m;
}

// The tile for groups of few rows, where reading B is what takes the time, or none. The limits are by the model (kernels/grouped_gemm/NOTES.md).
template <class Takes>
const TileKind *few_rows_tile(const Problem &problem, bool mx, const Takes &takes,
                              int64_t compute_units) {
  if (problem.axis != Axis::kRows && problem.axis != Axis::kNone) return nullptr;
  constexpr int64_t kMostRows = 16;
  const int64_t most_of_scarce_tiles = mx ? 32 : 64;
  const bool shared = problem.axis == Axis::kRows && problem.groups > 1;
  const int64_t rows = rows_of_group(problem);
  const bool scarce =
      tiles_of(problem, kSmallTile) < static_cast<double>(compute_units * kSmallTile.resident);
  if (rows > (scarce ? most_of_scarce_tiles : kMostRows)) return nullptr;
  const TileKind *found = nullptr;
  for (const TileKind &tile : kTiles) {
    if (!is_for_few_rows(tile) || !takes(tile)) continue;
    found = &tile;
    if (tile.rows >= (shared ? 2 : 1) * rows) break;  // sizes of groups are unlike
  }
  return found;
}

// What tiles for other than few rows take, by the model (kernels/grouped_gemm/NOTES.md); only ratios matter.
double cost_of(const Problem &problem, const TileKind &tile, bool mx, int64_t compute_units) {
  const double rounds =
      std::ceil(tiles_of(problem, tile) / static_cast<double>(compute_units * tile.resident));
  // Of as many products as those of 256 x 256, which wait for B where groups have few rows.
  double of_products = tile.columns == 256 ? 1 : 1.17;
  if (mx && tile.columns != 256)
    of_products = 1.1 + 0.12 * std::min(1.0, static_cast<double>(rows_of_group(problem)) / 512);
  return rounds * static_cast<double>(tile.resident * tile.rows * tile.columns) * of_products;
}

// Keys of all instances that take the problem, the best first. Tiles for few rows that are not for this one come after the general instance.
void set_keys(const Params &params, Problem *problem, int64_t compute_units) {
  const auto a = static_cast<uint64_t>(params.a.dtype), b = static_cast<uint64_t>(params.b.dtype);
  const uint64_t general = flydsl_aot_grouped_gemm_key(a, b, 0, 0, 0);
  problem->key.functional_key = general;
  const bool mx = has_scales(params);
  uint64_t layout = kLayouts[0];
  if (problem->empty || (!mx && !layout_of(params, problem->axis, &layout))) return;
  const auto takes = [&](const TileKind &tile) {
    if (!mx) return (tile.layouts >> layout & 1) != 0;
    return tile.mx && is_fast_mx(params, *problem, is_for_few_rows(tile) ? 128 : 256);
  };
  const TileKind *few =
      layout != kLayouts[0] ? nullptr : few_rows_tile(*problem, mx, takes, compute_units);
  struct Choice {
    double cost;
    uint64_t key;
  };
  constexpr double kOfGeneral = std::numeric_limits<double>::max();
  std::array<Choice, std::size(kTiles) + 1> choices;
  choices[0] = {kOfGeneral, general};
  size_t count = 1;
  for (const TileKind &tile : kTiles) {
    if (!takes(tile)) continue;
    const double cost = &tile == few            ? 0
                        : is_for_few_rows(tile) ? std::numeric_limits<double>::infinity()
                                                : cost_of(*problem, tile, mx, compute_units);
    choices[count++] = {
        cost, flydsl_aot_grouped_gemm_key(a, b, tile.number, layout, mx && is_shuffled(params))};
  }
  insertion_sort(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(count),
                   [](const Choice &x, const Choice &y) { return x.cost < y.cost; });
  static_assert(std::size(choices) <= select::kMaxKeys);
  problem->key.functional_key = choices[0].key;
  problem->key.fallbacks = count - 1;
  for (size_t i = 1; i < count; ++i) problem->key.fallback_keys[i - 1] = choices[i].key;
}

}  // namespace

bool has_scales(const Params &params) {
  return is_float8(params.a.dtype);
}

Axis axis_of(const Params &params) {
  if (params.a.rank == params.b.rank) return params.a.rank == 2 ? Axis::kK : Axis::kNone;
  return params.a.rank == 2 ? Axis::kRows : Axis::kColumns;
}

Sizes sizes_of(const Params &params) {
  const flydsl_aot_tensor &a = params.a, &b = params.b;
  return {present(params.offsets) ? params.offsets.sizes[0] : a.sizes[0], a.sizes[a.rank - 2],
          b.sizes[b.rank - 1], a.sizes[a.rank - 1]};
}

Problem describe(const Params &params, uint32_t compute_units) {
  Problem problem{};
  static_cast<Sizes &>(problem) = sizes_of(params);
  problem.params = &params;
  problem.axis = axis_of(params);
  problem.empty = problem.groups == 0 || empty(params.d);
  problem.key.op = kName;
  set_keys(params, &problem, compute_units ? compute_units : kComputeUnitsWithoutDevice);
  problem.key.align_bytes = alignment_of(params);
  problem.key.seq_q = static_cast<uint64_t>(problem.m);
  problem.key.seq_k = static_cast<uint64_t>(problem.n);
  problem.key.parallel = static_cast<uint64_t>(problem.groups);
  return problem;
}

uint32_t workers_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units) {
  // As many tiles as there may be: a group that shares rows, or columns, has a part of a tile.
  const int64_t shared_m = problem.axis == Axis::kRows ? problem.groups : 0;
  const int64_t shared_n = problem.axis == Axis::kColumns ? problem.groups : 0;
  const int64_t m = divided_up(problem.m, entry.tile[0]) + std::min(shared_m, problem.m);
  const int64_t n = divided_up(problem.n, entry.tile[1]) + std::min(shared_n, problem.n);
  const int64_t tiles = m * n * (shared_m + shared_n > 0 ? 1 : problem.groups);
  const int64_t resident =
      int64_t{compute_units ? compute_units : kComputeUnitsWithoutDevice} * entry.tile[2];
  return static_cast<uint32_t>(std::min(tiles, resident));
}

Kernarg kernarg_of(const Problem &problem, uint32_t workers) {
  const Params &params = *problem.params;
  Kernarg kernarg{};
  kernarg.a = params.a.data;
  kernarg.b = params.b.data;
  kernarg.d = params.d.data;
  set_strides(params.a, &kernarg.a_stride_g, &kernarg.a_stride_m, &kernarg.a_stride_k);
  set_strides(params.b, &kernarg.b_stride_g, &kernarg.b_stride_k, &kernarg.b_stride_n);
  set_strides(params.d, &kernarg.d_stride_g, &kernarg.d_stride_m, &kernarg.d_stride_n);
  if (has_scales(params)) {
    const bool shuffled = is_shuffled(params);
    set_scale(params.a_scale, shuffled, &kernarg.a_scale, &kernarg.a_scale_stride_g,
              &kernarg.a_scale_stride_m, &kernarg.a_scale_stride_k);
    set_scale(params.b_scale, shuffled, &kernarg.b_scale, &kernarg.b_scale_stride_g,
              &kernarg.b_scale_stride_n, &kernarg.b_scale_stride_k);
    kernarg.scales_shuffled = shuffled;
  }
  kernarg.d_dtype = static_cast<uint32_t>(params.d.dtype);
  if (const flydsl_aot_tensor &bias = params.bias; present(bias)) {
    kernarg.bias = bias.data;
    kernarg.bias_dtype = static_cast<uint32_t>(bias.dtype);
    kernarg.bias_stride_g = bias.rank == 2 ? walked_stride(bias, 0) : 0;
    kernarg.bias_stride_n = walked_stride(bias, bias.rank - 1);
  }
  if (present(params.offsets)) {
    kernarg.offsets = params.offsets.data;
    kernarg.offsets_stride_g = walked_stride(params.offsets, 0);
    kernarg.offsets_wide = params.offsets.dtype == FLYDSL_AOT_INT64;
  }
  kernarg.axis = static_cast<uint32_t>(problem.axis);
  kernarg.groups = static_cast<uint32_t>(problem.groups);
  kernarg.m = static_cast<int32_t>(problem.m);
  kernarg.n = static_cast<int32_t>(problem.n);
  kernarg.k = static_cast<int32_t>(problem.k);
  kernarg.workers = workers;
  return kernarg;
}

}  // namespace flydsl::grouped_gemm
