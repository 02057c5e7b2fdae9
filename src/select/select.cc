#include "src/select/select.h"

#include "src/status/status.h"

namespace flydsl::select {
namespace {

unsigned long long ull(uint64_t value) {
  return value;
}

}  // namespace

Candidates::Candidates(const archive::Archive &archive, const Problem &problem) noexcept {
  lists_[0] = archive.find(problem.op, problem.functional_key);
  for (size_t i = 0; i < problem.fallbacks; ++i)
    lists_[1 + i] = archive.find(problem.op, problem.fallback_keys[i]);
}

const archive::Candidate *Candidates::next() noexcept {
  for (; list_ < lists_.size(); ++list_, index_ = 0) {
    if (index_ < lists_[list_].size()) return &lists_[list_][index_++];
  }
  return nullptr;
}

Refusal refusal(const archive::Archive &archive, const archive::Candidate &candidate,
                const Problem &problem, const archive::TargetId &device) noexcept {
  if (problem.align_bytes < candidate.align_bytes) return Refusal::Alignment;
  if (problem.seq_q < candidate.seq_q_min || problem.seq_q > candidate.seq_q_max)
    return Refusal::SeqQ;
  if (problem.seq_k < candidate.seq_k_min || problem.seq_k > candidate.seq_k_max)
    return Refusal::SeqK;
  if (!archive::compatible(archive.target(candidate.entry), device, nullptr))
    return Refusal::Target;
  return Refusal::None;
}

std::string describe(Refusal refusal, const archive::Archive &archive,
                     const archive::Candidate &candidate, const Problem &problem,
                     const archive::TargetId &device) {
  switch (refusal) {
    case Refusal::None:
      return "fits";
    case Refusal::Alignment:
      return text(
          "needs base addresses and strides that are multiples of %u bytes; these are multiples of "
          "%llu",
          candidate.align_bytes, ull(problem.align_bytes));
    case Refusal::SeqQ:
      return text("takes Sq from %llu to %llu; it is %llu", ull(candidate.seq_q_min),
                  ull(candidate.seq_q_max), ull(problem.seq_q));
    case Refusal::SeqK:
      return text("takes Sk from %llu to %llu; it is %llu", ull(candidate.seq_k_min),
                  ull(candidate.seq_k_max), ull(problem.seq_k));
    case Refusal::Target: {
      std::string reason;
      archive::compatible(archive.target(candidate.entry), device, &reason);
      return reason;
    }
  }
  return {};
}

std::optional<uint32_t> select(const archive::Archive &archive, const Problem &problem,
                               const archive::TargetId &device) noexcept {
  Candidates candidates(archive, problem);
  while (const archive::Candidate *candidate = candidates.next()) {
    if (refusal(archive, *candidate, problem, device) == Refusal::None) return candidate->entry;
  }
  return std::nullopt;
}

std::string why_none(const archive::Archive &archive, const Problem &problem,
                     const archive::TargetId &device) {
  size_t count = 0;
  std::string refusals;
  Candidates candidates(archive, problem);
  while (const archive::Candidate *candidate = candidates.next()) {
    const Refusal why = refusal(archive, *candidate, problem, device);
    refusals += std::string("; ") + archive.string(archive.entries()[candidate->entry].name) +
                ": " + describe(why, archive, *candidate, problem, device);
    ++count;
  }
  if (count > 0) return text("none of %zu candidates fits", count) + refusals;
  std::string result =
      text("'%s' lists no kernel of %.*s for functional key 0x%016llx", archive.path().c_str(),
           static_cast<int>(problem.op.size()), problem.op.data(), ull(problem.functional_key));
  for (size_t i = 0; i < problem.fallbacks; ++i)
    result += text(" or 0x%016llx", ull(problem.fallback_keys[i]));
  return result;
}

}  // namespace flydsl::select
