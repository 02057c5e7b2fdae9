// From a problem to one kernel of the archive.
//
// The operator packs what decides whether a kernel can run into the functional key (its generated
// header); the archive's table lists, per key, the candidates best first; the first whose limits
// hold is taken. A problem may have several keys, in the order of preference: of kernels made for just
// such problems first, of kernels that can do more last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/archive/reader.h"

namespace flydsl::select {

constexpr size_t kMaxKeys = 4;

struct Problem {
  std::string_view op;
  uint64_t functional_key = 0;
  uint64_t align_bytes =
      1;  // greatest power of two that divides all base addresses and non-unit strides
  uint64_t seq_q = 0;
  uint64_t seq_k = 0;
  // Looked up where no candidate of functional_key fits; the first `fallbacks` of them count.
  std::array<uint64_t, kMaxKeys - 1> fallback_keys = {};
  size_t fallbacks = 0;
};

// The candidates of all the problem's keys, best first.
class Candidates {
 public:
  Candidates(const archive::Archive &archive, const Problem &problem) noexcept;
  // The next one; null after the last.
  const archive::Candidate *next() noexcept;

 private:
  std::array<std::span<const archive::Candidate>, kMaxKeys> lists_;
  size_t list_ = 0, index_ = 0;
};

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
