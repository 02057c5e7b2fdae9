#include "src/select/select.h"

#include "src/status/status.h"

namespace flydsl::select {
namespace {

unsigned long long ull(uint64_t value) {
  return value;
}

// Whether the kernels that are forced decide on this problem.
bool is_forced(const Context &context, const Problem &problem) noexcept {
  for (const uint32_t index : context.policy.forced) {
    const archive::Entry &entry = context.archive.entries()[index];
    if (problem.op == context.archive.string(entry.op) &&
        (problem.main || problem.has_key(entry.functional_key)))
      return true;
  }
  return false;
}

std::string forced_names(const Context &context, const Problem &problem) {
  std::string names;
  for (const uint32_t index : context.policy.forced) {
    const archive::Entry &entry = context.archive.entries()[index];
    if (problem.op == context.archive.string(entry.op))
      names.append(names.empty() ? "'" : "', '").append(context.archive.string(entry.name));
  }
  return names + "'";
}

}  // namespace

bool Problem::has_key(uint64_t key) const noexcept {
  if (functional_key == key) return true;
  for (size_t i = 0; i < fallbacks; ++i)
    if (fallback_keys[i] == key) return true;
  return false;
}

Candidates::Candidates(const archive::Archive &archive, const Problem &problem) noexcept
    : archive_(archive), problem_(problem) {}

const archive::Candidate *Candidates::next_list() noexcept {
  const size_t keys = problem_.fallbacks + 1;
  while (index_ == list_.size()) {
    // All that is in the archive before what has to be compiled.
    if (key_ == 2 * keys) return nullptr;
    const size_t key = key_ % keys;
    const uint64_t functional_key =
        key == 0 ? problem_.functional_key : problem_.fallback_keys[key - 1];
    list_ = key_ < keys ? archive_.find(problem_.op, functional_key)
                        : archive_.find_added(problem_.op, functional_key);
    ++key_;
    index_ = 0;
  }
  return &list_[index_++];
}

Refusal refusal(const Context &context, const archive::Candidate &candidate,
                const Problem &problem) noexcept {
  if (problem.align_bytes < candidate.align_bytes) return Refusal::Alignment;
  if (problem.seq_q < candidate.seq_q_min || problem.seq_q > candidate.seq_q_max)
    return Refusal::SeqQ;
  if (problem.seq_k < candidate.seq_k_min || problem.seq_k > candidate.seq_k_max)
    return Refusal::SeqK;
  if (!archive::compatible(context.archive.target(candidate.entry), context.device))
    return Refusal::Target;
  if (problem.main && context.policy.bars(candidate.entry)) return Refusal::Backend;
  if (!context.policy.forced.empty() && !context.policy.forces(candidate.entry) &&
      is_forced(context, problem))
    return Refusal::NotForced;
  return Refusal::None;
}

std::string describe(Refusal refusal, const Context &context, const archive::Candidate &candidate,
                     const Problem &problem) {
  switch (refusal) {
    case Refusal::None:
      return "fits";
    case Refusal::Alignment:
      return text(
          "needs base addresses and strides that are multiples of %u bytes; these are multiples of "
          "%llu",
          candidate.align_bytes, ull(problem.align_bytes));
    case Refusal::SeqQ:
      return text("takes rows from %llu to %llu; these are %llu", ull(candidate.seq_q_min),
                  ull(candidate.seq_q_max), ull(problem.seq_q));
    case Refusal::SeqK:
      return text("takes keys from %llu to %llu; these are %llu", ull(candidate.seq_k_min),
                  ull(candidate.seq_k_max), ull(problem.seq_k));
    case Refusal::Target: {
      std::string reason;
      archive::compatible(context.archive.target(candidate.entry), context.device, &reason);
      return reason;
    }
    case Refusal::Backend:
      return text("backend '%s' is not among those allowed",
                  context.archive.string(context.archive.entries()[candidate.entry].backend));
    case Refusal::NotForced:
      return "forced is " + forced_names(context, problem);
  }
  return {};
}

std::optional<Choice> select(const Context &context, const Problem &problem) noexcept {
  const archive::Archive &archive = context.archive;
  const archive::TuningRow *row = archive.tuned(
      problem.op, problem.tuning_key ? problem.tuning_key : problem.functional_key,
      {problem.seq_q, problem.seq_k, problem.parallel, problem.align_bytes}, context.compute_units);
  if (row && row->candidate != archive::kFirstThatFits) {
    const archive::Candidate &candidate = archive.candidates()[row->candidate];
    const bool fits = refusal(context, candidate, problem) == Refusal::None;
    if (problem.has_key(archive.entries()[candidate.entry].functional_key)) {
      if (fits) return Choice{candidate.entry, row};
    } else if (fits && problem.yields) {
      return std::nullopt;
    }
  }
  Candidates candidates(archive, problem);
  while (const archive::Candidate *candidate = candidates.next()) {
    if (refusal(context, *candidate, problem) == Refusal::None)
      return Choice{candidate->entry, nullptr};
  }
  return std::nullopt;
}

std::string describe(const archive::Archive &archive, const archive::TuningRow &row) {
  const archive::Entry &entry = archive.entries()[archive.candidates()[row.candidate].entry];
  return text("rows=%llu keys=%llu parallel=%llu alignment=%u compute_units=%u %s %.3f us (%s)",
              ull(row.rows), ull(row.keys), ull(row.parallel), row.align_bytes, row.compute_units,
              archive.string(entry.name), static_cast<double>(row.figure_ns) * 1e-3,
              archive.string(row.origin));
}

std::string why_none(const Context &context, const Problem &problem) {
  const archive::Archive &archive = context.archive;
  size_t count = 0;
  std::string refusals;
  Candidates candidates(archive, problem);
  while (const archive::Candidate *candidate = candidates.next()) {
    const Refusal why = refusal(context, *candidate, problem);
    refusals += std::string("; ") + archive.string(archive.entries()[candidate->entry].name) +
                ": " + describe(why, context, *candidate, problem);
    ++count;
  }
  if (count > 0) return text("none of %zu candidates fits", count) + refusals;
  const std::string where =
      archive.path().empty() ? "the library" : "'" + archive.path() + "'";
  std::string result =
      text("%s lists no kernel of %.*s for functional key 0x%016llx", where.c_str(),
           static_cast<int>(problem.op.size()), problem.op.data(), ull(problem.functional_key));
  for (size_t i = 0; i < problem.fallbacks; ++i)
    result += text(" or 0x%016llx", ull(problem.fallback_keys[i]));
  return result;
}

}  // namespace flydsl::select
