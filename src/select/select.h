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
#include "src/select/policy.h"

namespace flydsl::select {

constexpr size_t kMaxKeys = 8;

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
  // Whether it is for the kernel that a call is known by. A forced kernel that is no candidate of it leaves the call
  // without a kernel; of the others of a call neither it nor a list of backends says anything.
  bool main = true;
  // What else tuning looks at: what there is to spread over compute units (batch x heads, or columns), and the key of its
  // rows, 0 for functional_key. A problem that yields has no kernel where the row's is none of its candidates.
  uint64_t parallel = 1;
  uint64_t tuning_key = 0;
  bool yields = false;

  bool has_key(uint64_t key) const noexcept;
};

// Where a problem is to run.
struct Context {
  const archive::Archive &archive;
  const archive::TargetId &device;
  const Policy &policy;
  uint32_t compute_units = archive::kTuningComputeUnits;  // above 0
};

// The candidates of all the problem's keys, best first: of the archive's file, then of what was added to it. Archive and problem
// outlive it.
class Candidates {
 public:
  Candidates(const archive::Archive &archive, const Problem &problem) noexcept;
  // The next one; null after the last.
  const archive::Candidate *next() noexcept {
    return index_ < list_.size() ? &list_[index_++] : next_list();
  }

 private:
  const archive::Candidate *next_list() noexcept;

  const archive::Archive &archive_;
  const Problem &problem_;
  std::span<const archive::Candidate>
      list_;  // of the key before `key_`, looked up when it is needed
  size_t key_ = 0, index_ = 0;
};

enum class Refusal { None, Alignment, SeqQ, SeqK, Target, Backend, NotForced };

// Why a candidate does not fit the problem; None when it does. What the kernel cannot do comes before what the policy
// does not want.
Refusal refusal(const Context &context, const archive::Candidate &candidate,
                const Problem &problem) noexcept;

// The refusal in words, with the limit and the value seen.
std::string describe(Refusal refusal, const Context &context, const archive::Candidate &candidate,
                     const Problem &problem);

struct Choice {
  uint32_t entry;
  const archive::TuningRow *row;  // that decided; null: the first candidate that fits
};

// The kernel to run: of the tuning row nearest to the problem if it names one and that fits, else the first candidate that does. No
// allocation, no lock.
std::optional<Choice> select(const Context &context, const Problem &problem) noexcept;

// A tuning row that names a kernel in words without commas: what was tuned, and where its figure comes from.
std::string describe(const archive::Archive &archive, const archive::TuningRow &row);

// One sentence for a problem without a kernel: every candidate and its refusal.
std::string why_none(const Context &context, const Problem &problem);

}  // namespace flydsl::select
