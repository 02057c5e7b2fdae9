#include "v2src/recent_calls.h"

#include <atomic>

namespace flydsl {
namespace {

constexpr size_t kSets = 128, kWays = 4;
// One whose memory overlaps otherwise than it did is kept anew after so many calls.
constexpr uint32_t kMisfits = 16;

}  // namespace

struct RecentCalls::Way {
  static constexpr int32_t kReplacing = 1 << 30;

  bool enter() {
    if (users.fetch_add(1, std::memory_order_acquire) >= 0) return true;
    leave();
    return false;
  }
  void leave() { users.fetch_sub(1, std::memory_order_release); }

  std::atomic<uint64_t> hash{0};
  // How many look at `call` or make it, less kReplacing while it is replaced, which only begins when nobody does.
  std::atomic<int32_t> users{0};
  std::unique_ptr<KnownCall> call;
};

struct RecentCalls::Set {
  Way ways[kWays];
  std::atomic<uint64_t> unknown{0};  // the hash of the last form that was not here
};

RecentCalls::RecentCalls(uint64_t most_alignment)
    : most_alignment_(most_alignment), sets_(new Set[kSets]) {}
RecentCalls::~RecentCalls() = default;

RecentCalls::Set &RecentCalls::set_of(const CallForm &form) {
  static_assert(kSets == 128);
  return sets_[form.hash >> 57];
}

RecentCalls::Answer RecentCalls::repeat(flydsl_aot_handle *handle, const CallForm &form,
                                        void *stream, Status *status) {
  Set &set = set_of(form);
  for (Way &way : set.ways) {
    if (way.hash.load(std::memory_order_relaxed) != form.hash || !way.enter()) continue;
    if (!way.call || !way.call->is_of(form)) {
      way.leave();
      continue;
    }
    Answer answer = Answer::kMade;
    if (way.call->fits(form)) {
      *status = way.call->launch(handle, form, stream);
    } else {
      const uint32_t before = way.call->misfits.fetch_add(1, std::memory_order_relaxed);
      answer = before % kMisfits == kMisfits - 1 ? Answer::kWorthKeeping : Answer::kUnknown;
    }
    way.leave();
    return answer;
  }
  return set.unknown.exchange(form.hash, std::memory_order_relaxed) == form.hash
             ? Answer::kWorthKeeping
             : Answer::kUnknown;
}

void RecentCalls::keep(const CallForm &form, std::unique_ptr<KnownCall> call) {
  if (!call) return;
  Set &set = set_of(form);
  const auto place = [&]() -> Way & {
    for (Way &way : set.ways)
      if (const uint64_t held = way.hash.load(); held == form.hash || held == 0) return way;
    return set.ways[form.hash % kWays];
  };
  Way &way = place();
  int32_t nobody = 0;
  if (!way.users.compare_exchange_strong(nobody, -Way::kReplacing, std::memory_order_acquire))
    return;
  way.call.swap(call);
  way.hash.store(form.hash);
  way.users.fetch_add(Way::kReplacing, std::memory_order_release);
}

}  // namespace flydsl
