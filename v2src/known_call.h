// A call that was made, kept to be made again with other addresses and seeds.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "src/device/runtime.h"
#include "src/module/cache.h"
#include "src/status/status.h"
#include "v2src/call_form.h"

struct flydsl_aot_handle;

namespace flydsl {

struct KnownCall {
  static constexpr size_t kMostLaunches = 8, kMostKernargBytes = 2048;

  // Memory whose parts keep their distances, since they overlap: the one that begins first, an index of CallForm::sources, and the
  // bytes of all.
  struct Group {
    uint32_t leader;
    uint64_t bytes;
  };
  // Another one of a group; also NULL, of a tensor without elements, which stays so.
  struct Follower {
    uint32_t index, leader;
    uint64_t distance;
  };
  // A word of the arguments: a number to which one of CallForm::sources is added.
  struct Change {
    uint32_t word, source;
    uint64_t value;
  };
  struct Launched {
    uint32_t entry;
    module::KernargContract contract;
    device::LaunchShape shape;
    size_t kernarg_bytes;
    size_t last_change;  // of those that lead from the launch before to this one
  };

  bool is_of(const CallForm &form) const {
    return layout == form.layout && device == form.device && words.size() == form.words &&
           std::memcmp(words.data(), form.word, form.words * kWordBytes) == 0;
  }
  // Whether memory overlaps as it did, and the same is NULL.
  bool fits(const CallForm &form) const;
  // `form` fits.
  Status launch(flydsl_aot_handle *handle, const CallForm &form, void *stream) const;

  const ParamsLayout *layout = nullptr;
  int device = 0;
  std::vector<uint64_t> words;
  std::vector<Group> groups;
  size_t apart = 0;  // so many of them, from the first, must not overlap any other
  std::vector<Follower> followers;
  std::vector<uint64_t> kernarg;  // before the changes of the first launch
  std::vector<Change> changes;
  std::vector<Launched> launches;
  mutable std::atomic<uint32_t> misfits{0};

 private:
  Status load_and_launch(flydsl_aot_handle *handle, const CallForm &form, void *stream) const;
  Status launch_all(const flydsl_aot_handle *handle, const CallForm &form, void *stream,
                    const device::HipFunction *functions) const;
};

}  // namespace flydsl
