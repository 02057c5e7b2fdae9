// Calls that a handle has made, to be made again at once when one of the same form comes: the same parameters to the byte, but for
// addresses and seeds. What a call launches depends on its parameters, the device and the handle only; on addresses it depends by how
// far they are aligned, by which are NULL and by how memory overlaps. Where these are as before, checks, selection and kernel
// arguments need not be found a second time: arguments hold addresses and seeds with a constant added at most (call_recording sees to
// it that this is so).
//
// A table of fixed size. A form is kept when it comes for the second time in a row to its part of the table: parameters that never come
// again cost a look-up. No call waits for another one's.
#pragma once

#include <memory>

#include "v2src/known_call.h"

namespace flydsl {

class RecentCalls {
 public:
  // `most_alignment`: selection tells apart no more. Operators tell apart 16 bytes, which is the least.
  explicit RecentCalls(uint64_t most_alignment);
  ~RecentCalls();

  uint64_t most_alignment() const { return most_alignment_; }

  enum class Answer { kMade, kUnknown, kWorthKeeping };
  // Makes the call again if its form is here. Otherwise nothing was done.
  Answer repeat(flydsl_aot_handle *handle, const CallForm &form, void *stream, Status *status);

  void keep(const CallForm &form, std::unique_ptr<KnownCall> call);

 private:
  struct Way;
  struct Set;
  Set &set_of(const CallForm &form);

  const uint64_t most_alignment_;
  std::unique_ptr<Set[]> sets_;
};

}  // namespace flydsl
