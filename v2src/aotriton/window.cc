#include "v2src/aotriton/window.h"

#include "v2src/aotriton/error.h"

namespace flydsl::aotriton {
namespace {

// CausalType: 1 and 2 are those of its kernels that its header leaves out.
enum : int8_t { kNone = 0, kTopLeft = 1, kBottomRight = 2, kWindowed = 3 };
// WindowValue.
constexpr int32_t kTopLeftAligned = -2147483647, kBottomRightAligned = -2147483646;

bool is_sentinel(int32_t window) {
  return window == kTopLeftAligned || window == kBottomRightAligned;
}

// Whether lengths are known here.
bool dense(const Rows &rows) {
  return !rows.packed && rows.used.rank == 0;
}

}  // namespace

bool has_one_diagonal(const Sequences &sequences) {
  const Rows &q = sequences.q, &k = sequences.k;
  if (q.packed && k.packed)
    return q.starts.data == k.starts.data && q.used.data == k.used.data;
  return !q.packed && !k.packed && q.longest == k.longest && q.used.data == k.used.data;
}

flydsl_aot_status mask_of(const Call &call, const Sequences &sequences, flydsl_aot_mask *mask) {
  *mask = {FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};
  if (call.causal_type == kNone) return FLYDSL_AOT_OK;
  if (call.causal_type < kNone || call.causal_type > kWindowed) {
    return refuse(call.function, FLYDSL_AOT_INVALID_ARGUMENT,
                  "causal_type is %d; allowed: 0 (none), 3 (windowed), and 1, 2 (causal, top-left and "
                  "bottom-right)",
                  call.causal_type);
  }
  int32_t left = call.window_left, right = call.window_right;
  if (call.causal_type != kWindowed)
    left = right = call.causal_type == kTopLeft ? kTopLeftAligned : kBottomRightAligned;

  // Numbers count from the top-left diagonal, whatever the other one is.
  const int64_t longest_q = sequences.q.longest, longest_k = sequences.k.longest;
  const bool left_bound = !is_sentinel(left) && left < longest_q - 1;
  const bool right_is_number = !is_sentinel(right);
  const bool right_bound = !right_is_number || right < longest_k - 1;
  if (!left_bound && !right_bound) return FLYDSL_AOT_OK;
  mask->left = left_bound ? left : FLYDSL_AOT_UNLIMITED;
  mask->right = !right_bound ? FLYDSL_AOT_UNLIMITED : right_is_number ? right : 0;
  const bool bottom_right = right == kBottomRightAligned;
  mask->anchor = bottom_right ? FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT : FLYDSL_AOT_ANCHOR_TOP_LEFT;

  const bool mixed = bottom_right && left_bound;
  const bool negative = (left_bound && left < 0) || (right_is_number && right_bound && right < 0);
  if (!mixed && !negative) return FLYDSL_AOT_OK;
  if (mixed && !negative && has_one_diagonal(sequences)) return FLYDSL_AOT_OK;  // the diagonals are one
  if (dense(sequences.q) && dense(sequences.k)) {
    // The same bounds counted from the bottom-right diagonal.
    const int64_t shift = longest_k - longest_q;
    if (left_bound) mask->left = left + shift;
    if (right_bound && right_is_number) mask->right = right - shift;
    mask->anchor = FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT;
    if ((!left_bound || mask->left >= 0) && (!right_bound || mask->right >= 0)) return FLYDSL_AOT_OK;
  } else if (!negative) {
    // A sliding window over sequences whose keys may outnumber their queries: both bounds from the bottom-right diagonal,
    // FlashAttention's and PyTorch's meaning (docs/aotriton.md).
    return FLYDSL_AOT_OK;
  }
  return refuse(call.function, FLYDSL_AOT_UNSUPPORTED_FEATURE,
                "window_left is %d, window_right %d: a window that does not hold the diagonal is not "
                "supported",
                left, right);
}

}  // namespace flydsl::aotriton
