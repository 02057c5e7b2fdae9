// From a problem to one kernel of the archive.
//
// The operator packs what decides whether a kernel can run into the functional key (its generated
// header); the archive's table lists, per key, the candidates best first; the first whose limits
// hold is taken. Where none of them fits, those of the problem's second key have their turn, if it has
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/archive/reader.h"

namespace flydsl::select {

struct Problem {
  std::string_view op;
  uint64_t functional_key = 0;
  uint64_t align_bytes =
      1;  // greatest power of two that divides all base addresses and non-unit strides
  uint64_t seq_q = 0;
  uint64_t seq_k = 0;
  // Of kernels that run the problem too, but have more to look after than those of functional_key.
  std::optional<uint64_t> fallback_key = std::nullopt;
};

// The candidates of one of the problem's keys, best first: `turn` 0 is functional_key, 1 fallback_key.
constexpr int kTurns = 2;
std::span<const archive::Candidate> candidates_of(const archive::Archive &archive,
                                                  const Problem &problem, int turn) noexcept;

enum class Refusal { None, Alignment, SeqQ, SeqK, Target };

// Why a candidate does not fit the problem on a device; None when it does.
Refusal refusal(const archive::Archive &archive, const archive::Candidate &candidate,
                const Problem &problem, const archive::TargetId &device) noexcept;

// The refusal in words, with the limit and the value seen.
std::string describe(Refusal refusal, const archive::Archive &archive,
                     const archive::Candidate &candidate, const Problem &problem,
                     const archive::TargetId &device);

// Entry index of the kernel to run. No allocation, no lock.
std::optional<uint32_t> select(const archive::Archive &archive, const Problem &problem,
                               const archive::TargetId &device) noexcept;

// One sentence for a problem without a kernel: every candidate and its refusal.
std::string why_none(const archive::Archive &archive, const Problem &problem,
                     const archive::TargetId &device);

}  // namespace flydsl::select
