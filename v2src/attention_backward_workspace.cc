// What the passes of attention_backward leave for each other, in the caller's workspace.
#include "v2src/attention_backward.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_backward {
namespace {

// Of a plane (kernels/attention_backward/planes.hip.h).
constexpr int64_t kTileRows = 128;
// Of every part: a cache line, and more than any load.
constexpr uint64_t kPartAlignment = 128;
// kernels/attention_backward/fused/: queues of work, then a counter for 8 rows.
constexpr int64_t kQueues = 16, kRowsOfCounter = 8;

int64_t rounded_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

Status workspace_of(const Problem &problem, Way way, Workspace *workspace) {
  *workspace = {};
  if (!problem.has_rows) return {};
  const Params &params = *problem.params;
  const bool packed = present(params.cu_seqlens_q);
  workspace->planes = packed ? problem.heads_q : problem.batches * problem.heads_q;
  workspace->rows_stride =
      packed ? rounded_up(problem.total_q, kTileRows) + 2 * kTileRows * problem.batches + kTileRows
             : rounded_up(problem.seq_q, kTileRows);
  LinearTiles tiles;  // below 2^31 of them: so bytes fit 63 bits
  FLYDSL_RETURN_IF_ERROR(
      linear_tiles(workspace->rows_stride, workspace->planes, 1, kTileRows, &tiles));
  const int64_t rows = workspace->rows_stride * workspace->planes;
  const auto part = [&](int64_t elements, uint64_t element_bytes) {
    const uint64_t at = workspace->bytes;
    workspace->bytes += (static_cast<uint64_t>(elements) * element_bytes + kPartAlignment - 1) /
                        kPartAlignment * kPartAlignment;
    return at;
  };
  workspace->row_lse = part(rows, sizeof(float));
  workspace->row_delta = part(rows, sizeof(float));
  if (problem.copies_dout) {
    workspace->dout_copy_row = rounded_up(problem.head_dim_v, 8);
    const int64_t batches = packed ? 1 : problem.batches;
    workspace->dout_copy =
        part(batches * problem.heads_q * problem.total_q * workspace->dout_copy_row, 2);
  }
  if (way != Way::kApart) {
    workspace->dq_accumulator_row = problem.dims->qk;
    workspace->dq_accumulator = part(rows * workspace->dq_accumulator_row, sizeof(float));
    workspace->dq_counters_count = kQueues + rows / kRowsOfCounter;
    workspace->dq_counters = part(workspace->dq_counters_count, sizeof(uint32_t));
  }
  return {};
}

}  // namespace flydsl::attention_backward
