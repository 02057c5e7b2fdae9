// The rows that a wave owns: which others they meet, and their operands of the score products.
#pragma once

#include "attention_backward/own_operand.hip.h"
#include "attention_backward/work.hip.h"

namespace flydsl::kernels {

constexpr i32 kOwnOfWave = 32;
constexpr i32 kOwnOfWorkGroup = 4 * kOwnOfWave;

// 32 own rows and the others. What a lane can compute again is not kept where registers are scarce.
template <Pass pass, bool few_registers>
struct OwnPlaces {
  static constexpr bool kFewRegisters = few_registers;
  const Work<pass> &work;
  u32 kept_lane;
  i32 first_own;
  Range seen_by_any, seen_by_all;
  float own_lse = 0.0f, own_delta = 0.0f;  // of the lane, where it owns a query

  FLYDSL_DEVICE OwnPlaces(const Work<pass> &work, i32 first_own, u32 lane)
      : work(work), kept_lane(lane), first_own(first_own) {
    const Range of_first = work.others_of(first_own),
                of_last = work.others_of(first_own + kOwnOfWave - 1);
    seen_by_any = {of_first.first, of_last.last};
    seen_by_all = {of_last.first, of_first.last};
  }

  FLYDSL_DEVICE u32 lane() const { return kFewRegisters ? lane_number_here() : kept_lane; }
  FLYDSL_DEVICE i32 own() const { return first_own + static_cast<i32>(lane() % 32); }

  FLYDSL_DEVICE void load_lse_and_delta() {
    if constexpr (pass == Pass::queries) {
      own_lse = work.lse_of_rows()[own()];
      own_delta = work.delta_of_rows()[own()];
    }
  }

  // Of 32 others from `first_other` on: other waves of the work-group may meet them and this one none.
  FLYDSL_DEVICE bool meets(i32 first_other) const {
    return first_other <= seen_by_any.last && first_other + 31 >= seen_by_any.first;
  }
  FLYDSL_DEVICE bool meets_all(i32 first_other, i32 count) const {
    return first_other >= seen_by_all.first && first_other + count - 1 <= seen_by_all.last;
  }
  // The first of 32 others that the lane has in its elements.
  FLYDSL_DEVICE i32 first_of_lane(i32 first_other) const {
    return first_other + static_cast<i32>(lane() / 32 * 4);
  }
  // The visible ones, counted from there.
  FLYDSL_DEVICE Range visible(i32 first_other) const {
    const Range all = work.others_of(own());
    return {all.first - first_of_lane(first_other), all.last - first_of_lane(first_other)};
  }
};

// Keys have both gradients to accumulate; with the features' code the largest classes leave registers for one operand only.
// Without, two classes just make two waves a SIMD.
template <int head_dim_qk, int head_dim_v, Pass pass, bool general>
constexpr bool kFewRegistersOf = pass == Pass::keys
                                     ? head_dim_qk + head_dim_v > 400 ||
                                           (!general && head_dim_qk + head_dim_v == 256)
                                     : !general && head_dim_qk == 192 && head_dim_v == 128;

// With a wave's operands.
template <int head_dim_qk, int head_dim_v, Pass pass, bool general>
struct OwnRows : OwnPlaces<pass, kFewRegistersOf<head_dim_qk, head_dim_v, pass, general>> {
  using Places = OwnPlaces<pass, kFewRegistersOf<head_dim_qk, head_dim_v, pass, general>>;
  using Places::lane, Places::own, Places::work;
  using Own1 = OwnOperand<head_dim_qk / 16, false>;
  using Own2 = OwnOperand<head_dim_v / 16, general && Places::kFewRegisters>;
  Own1 own_1;
  Own2 own_2;

  FLYDSL_DEVICE OwnRows(const Work<pass> &work, u32 wave, u32 lane, lds_ptr<char> own_of_group)
      : Places(work, work.first_own + static_cast<i32>(wave) * kOwnOfWave, lane),
        own_1(nullptr, lane),
        own_2(own_of_group + wave * Own2::lds_bytes, lane) {}

  FLYDSL_DEVICE void load_own() {
    const i32 row = work.real_own(own());
    own_1.template load<!general>(work.own_row_1(row), fresh_arguments()->head_dim_qk, lane());
    own_2.template load<!general>(work.own_row_2(row), fresh_arguments()->head_dim_v, lane());
    this->load_lse_and_delta();
  }
};

}  // namespace flydsl::kernels
