#include "v2src/call_recording.h"

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>

#include "v2src/tensor_check.h"
#include "v2src/types.h"

namespace flydsl {
namespace {

using call_form::word_at;

// Bytes from a tensor's first element to its last one's end. At least 1: equal addresses then overlap.
uint64_t span_of(const flydsl_aot_tensor &tensor) {
  if (empty(tensor)) return 1;
  // Sizes of packed elements count halves of what the one stride of 1 walks.
  const bool packed = tensor.dtype == FLYDSL_AOT_E2M1X2;
  int ones = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) ones += walked_stride(tensor, axis) == 1;
  uint64_t elements = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    const int64_t stride = walked_stride(tensor, axis);
    const int64_t stored = tensor.sizes[axis] / (packed && ones == 1 && stride == 1 ? 2 : 1);
    elements += static_cast<uint64_t>(stride) * static_cast<uint64_t>(stored - 1);
  }
  return (elements + 1) * dtype_bytes(tensor.dtype);
}

// Where the sources of a form are in its parameters, in their order; `span` is 0 for what is no part of any check of overlaps.
template <class Visit>
void visit_sources(const CallForm &form, Visit visit) {
  for (const size_t at : form.layout->tensors) {
    const auto &tensor = *reinterpret_cast<const flydsl_aot_tensor *>(form.params + at);
    if (tensor.rank != 0) visit(at + offsetof(flydsl_aot_tensor, data), span_of(tensor));
  }
  const auto visit_pointer = [&](size_t at, uint64_t span) {
    if (word_at(form.params, at) != 0) visit(at, span);
  };
  for (const size_t at : form.layout->pointers) visit_pointer(at, kWordBytes);
  if (form.layout->workspace != 0) visit_pointer(form.layout->workspace, 0);
  for (const size_t at : form.layout->seeds) visit(at, uint64_t{0});
}

constexpr uint32_t kNothing = CallForm::kNothing;

// A plain pointer: a thread_local with a destructor would keep the library from being unloaded.
thread_local CallRecording *of_thread = nullptr;

}  // namespace

struct CallRecording::Noted {
  uint32_t entry;
  module::KernargContract contract;
  device::LaunchShape shape;
  size_t kernarg_bytes;
  std::vector<uint64_t> kernarg;

  bool differs_in_arguments_only(const Noted &other) const {
    return entry == other.entry && kernarg_bytes == other.kernarg_bytes &&
           std::equal(shape.grid, shape.grid + 3, other.shape.grid) &&
           std::equal(shape.block, shape.block + 3, other.shape.block) &&
           shape.lds_dynamic_bytes == other.shape.lds_dynamic_bytes;
  }
};

struct CallRecording::Range {
  uint32_t index;
  uint64_t begin, end;
};

std::atomic<int> CallRecording::count_{0};

CallRecording::CallRecording(const CallForm &form) : form_(form) {
  ++count_;
  of_thread = this;
}

CallRecording::~CallRecording() {
  of_thread = nullptr;
  --count_;
}

// Overlapping ranges are one group.
bool CallRecording::find_groups() {
  std::vector<Range> ranges;
  uint32_t index = 0;
  bool wraps = false;
  visit_sources(form_, [&](size_t, uint64_t span) {
    const uint64_t begin = form_.sources[index];
    if (index < form_.addresses && begin == 0)
      followers_.push_back({index, kNothing, 0});
    else if (span != 0)
      ranges.push_back({index, begin, begin + span});
    wraps |= begin + span < begin;
    ++index;
  });
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  uint64_t end = 0;
  for (const Range &range : ranges) {
    if (groups_.empty() || range.begin >= end) groups_.push_back({range.index, end = 0});
    KnownCall::Group &group = groups_.back();
    const uint64_t leader = form_.sources[group.leader];
    if (range.index != group.leader)
      followers_.push_back({range.index, group.leader, range.begin - leader});
    end = std::max(end, range.end);
    group.bytes = end - leader;
  }
  return !wraps;
}

// Other places for the groups, farther apart than real ones, their low bits kept, so that they are as aligned; other seeds.
bool CallRecording::find_moves() {
  constexpr uint64_t kKept = uint64_t{1} << 40, kApart = uint64_t{1} << 48;
  moved_by_.assign(std::size(form_.sources), 0);
  std::vector<uint64_t> distinct = {0};
  const auto move = [&](uint32_t source, uint64_t by) {
    moved_by_[source] = by;
    distinct.push_back(by);
  };
  uint64_t number = 0;
  for (const KnownCall::Group &group : groups_) {
    if (group.bytes >= kKept) return false;
    const uint64_t leader = form_.sources[group.leader];
    move(group.leader, leader % kKept + ++number * kApart - leader);
  }
  for (const KnownCall::Follower &follower : followers_)
    if (follower.leader != kNothing)
      moved_by_[follower.index] = moved_by_[follower.leader];
  const size_t workspace = form_.layout->workspace;
  if (workspace != 0 && word_at(form_.params, workspace) != 0) {
    const size_t source = form_.addresses - 1;
    const uint64_t address = form_.sources[source];
    move(static_cast<uint32_t>(source), address % kKept + ++number * kApart - address);
  }
  for (size_t i = 0; i < form_.layout->seeds.size(); ++i)
    move(static_cast<uint32_t>(form_.addresses + i), ++number * 0x5851F42D4C957F2D);
  // Which of them a word has moved with must be certain, and that it has.
  std::sort(distinct.begin(), distinct.end());
  return std::adjacent_find(distinct.begin(), distinct.end()) == distinct.end();
}

bool CallRecording::rehearse(void *params) {
  of_thread = nullptr;
  if (made_.too_many || made_.all.empty() || !find_groups() || !find_moves()) return false;
  auto *bytes = static_cast<unsigned char *>(params);
  std::memcpy(bytes, form_.params, form_.layout->bytes);
  size_t source = 0;
  visit_sources(form_, [&](size_t at, uint64_t) {
    const uint64_t word = form_.sources[source] + moved_by_[source];
    std::memcpy(bytes + at, &word, sizeof word);
    ++source;
  });
  rehearses_ = true;
  of_thread = this;
  return true;
}

bool CallRecording::set_arguments(KnownCall *call) const {
  std::vector<KnownCall::Change> now;  // what the words hold, launch by launch
  size_t most_words = 0;
  for (const Noted &made : made_.all) most_words = std::max(most_words, made.kernarg.size());
  now.reserve(most_words);
  call->kernarg.reserve(most_words);
  call->launches.reserve(made_.all.size());
  for (size_t i = 0; i < made_.all.size(); ++i) {
    const Noted &made = made_.all[i], &rehearsed = rehearsed_.all[i];
    if (!made.differs_in_arguments_only(rehearsed)) return false;
    for (uint32_t at = 0; at < made.kernarg.size(); ++at) {
      KnownCall::Change word = {at, kNothing, made.kernarg[at]};
      if (const uint64_t by = rehearsed.kernarg[at] - word.value; by != 0) {
        const auto found = std::find(moved_by_.begin(), moved_by_.end(), by);
        if (found == moved_by_.end()) return false;
        word.source = static_cast<uint32_t>(found - moved_by_.begin());
        word.value -= form_.sources[word.source];
      }
      if (at == now.size()) {
        now.push_back(word);
        call->kernarg.push_back(word.value);
        if (word.source != kNothing) call->changes.push_back(word);
      } else if (now[at].source != word.source || now[at].value != word.value) {
        now[at] = word;
        call->changes.push_back(word);
      }
    }
    call->launches.push_back(
        {made.entry, made.contract, made.shape, made.kernarg_bytes, call->changes.size()});
  }
  return true;
}

std::unique_ptr<KnownCall> CallRecording::finish() {
  of_thread = nullptr;
  auto call = std::make_unique<KnownCall>();
  if (rehearsed_.too_many || made_.all.size() != rehearsed_.all.size() ||
      !set_arguments(call.get()))
    return nullptr;
  call->layout = form_.layout;
  call->device = form_.device;
  call->words.assign(form_.word, form_.word + form_.words);
  for (const bool apart : {true, false})
    for (size_t i = 0; i < groups_.size(); ++i)
      if ((apart_ >> i & 1) == apart) call->groups.push_back(groups_[i]);
  call->apart = static_cast<size_t>(std::popcount(apart_));
  call->followers = std::move(followers_);
  return call;
}

bool CallRecording::note_launch(uint32_t entry, const module::KernargContract &contract,
                         const device::LaunchShape &shape, const void *kernarg,
                         size_t kernarg_bytes) noexcept {
  CallRecording *now = of_thread;
  if (!now) return false;
  Launches &launches = now->rehearses_ ? now->rehearsed_ : now->made_;
  if (launches.all.size() == KnownCall::kMostLaunches ||
      kernarg_bytes > KnownCall::kMostKernargBytes)
    launches.too_many = true;
  if (launches.too_many) return now->rehearses_;
  try {
    std::vector<uint64_t> words((kernarg_bytes + kWordBytes - 1) / kWordBytes);
    std::memcpy(words.data(), kernarg, kernarg_bytes);
    launches.all.push_back({entry, contract, shape, kernarg_bytes, std::move(words)});
  } catch (const std::bad_alloc &) {
    launches.too_many = true;
  }
  return now->rehearses_;
}

void CallRecording::note_address(const void *data) noexcept {
  CallRecording *now = of_thread;
  if (!now || !now->rehearses_ || !data) return;
  // Groups are far from each other then.
  const auto address = reinterpret_cast<uint64_t>(data);
  for (KnownCall::Group &group : now->groups_) {
    const uint64_t begin = now->form_.sources[group.leader] + now->moved_by_[group.leader];
    if (address >= begin && address - begin < group.bytes) now->apart_ |= uint64_t{1} << (&group - now->groups_.data());
  }
}

bool CallRecording::find_rehearsal(int *device) noexcept {
  const CallRecording *now = of_thread;
  if (!now || !now->rehearses_) return false;
  *device = now->form_.device;
  return true;
}

}  // namespace flydsl
