#include "v2src/recent_calls.h"

#include <array>
#include <cstring>
#include <new>

#include "flydsl_aot/types.h"
#include "src/log/log.h"
#include "v2src/handle.h"

namespace flydsl {
namespace {

constexpr size_t kPlaces = 256, kMostLaunches = 8;

// Of every 144 bytes, a tensor's, two words: the address is one of them in the structs of all operators.
size_t place_of(const void *op, const void *params, uint32_t params_bytes) {
  constexpr size_t kTensorBytes = sizeof(flydsl_aot_tensor);
  const char *bytes = static_cast<const char *>(params);
  uint64_t hash = reinterpret_cast<uint64_t>(op);
  for (size_t at = 8; at + 16 <= params_bytes; at += kTensorBytes) {
    uint64_t words[2];
    std::memcpy(words, bytes + at, sizeof words);
    hash = (hash ^ words[0]) * 0x9E3779B97F4A7C15;
    hash = ((hash >> 29) ^ hash ^ words[1]) * 0x9E3779B97F4A7C15;
  }
  return hash >> 56;
}
static_assert(kPlaces == 256);

}  // namespace

struct RecentCalls::Place {
  struct Launched {
    uint32_t entry;
    module::KernargContract contract;
    device::LaunchShape shape;
    size_t kernarg_at, kernarg_bytes;
  };

  bool holds(const void *wanted, const void *bytes, uint32_t count) const {
    return op == wanted && params.size() == count && std::memcmp(params.data(), bytes, count) == 0;
  }
  // False: on another device. All are loaded before one is launched, as on the long way.
  bool launch(flydsl_aot_handle *handle, void *stream, Status *status) {
    int now = 0;
    if (*status = handle->runtime->stream_device(stream, &now); !status->ok()) return true;
    if (now != device) return false;
    device::DeviceScope scope(*handle->runtime);
    if (*status = scope.enter(now); !status->ok()) return true;
    std::array<module::ModuleCache::Use, kMostLaunches> kernels;
    for (size_t i = 0; i < launches.size() && status->ok(); ++i)
      *status =
          handle->modules->get(now, launches[i].entry, launches[i].contract, stream, &kernels[i]);
    for (size_t i = 0; i < launches.size() && status->ok(); ++i) {
      const Launched &launched = launches[i];
      *status = launch_kernel(handle, launched.entry, kernels[i].function(), launched.shape, stream,
                              kernargs.data() + launched.kernarg_at, launched.kernarg_bytes);
    }
    return true;
  }

  std::atomic<bool> taken{false};
  const void *op = nullptr;  // null: nothing is kept
  int device = 0;
  bool too_many = false;  // launches, or for the memory there is
  std::vector<unsigned char> params, kernargs;
  std::vector<Launched> launches;
};

namespace {
// A plain pointer: a thread_local with a destructor would keep the library from being unloaded.
thread_local void *recording = nullptr;
}  // namespace

RecentCalls::RecentCalls() : places_(new Place[kPlaces]) {}
RecentCalls::~RecentCalls() = default;

RecentCalls::Place *RecentCalls::take(const void *op, const void *params, uint32_t params_bytes) {
  Place &place = places_[place_of(op, params, params_bytes)];
  return place.taken.exchange(true, std::memory_order_acquire) ? nullptr : &place;
}

bool RecentCalls::repeat(flydsl_aot_handle *handle, const void *op, const void *params,
                         uint32_t params_bytes, void *stream, Status *status) {
  Place *place = take(op, params, params_bytes);
  if (!place) return false;
  const bool made = place->holds(op, params, params_bytes) && place->launch(handle, stream, status);
  place->taken.store(false, std::memory_order_release);
  return made;
}

RecentCalls::Recording::Recording(RecentCalls *calls, const void *op, const void *params,
                                  uint32_t params_bytes)
    : place_(calls->take(op, params, params_bytes)) {
  if (!place_) return;
  place_->op = nullptr;
  place_->too_many = false;
  place_->kernargs.clear();
  place_->launches.clear();
  const auto *bytes = static_cast<const unsigned char *>(params);
  try {
    place_->params.assign(bytes, bytes + params_bytes);
  } catch (const std::bad_alloc &) {
    place_->too_many = true;
  }
  place_->op = op;
  recording = place_;
}

RecentCalls::Recording::~Recording() {
  if (!place_) return;
  recording = nullptr;
  // A call without a launch has nothing to be spared.
  if (!kept_ || place_->too_many || place_->launches.empty()) place_->op = nullptr;
  place_->taken.store(false, std::memory_order_release);
}

void RecentCalls::note(int device, uint32_t entry, const module::KernargContract &contract,
                       const device::LaunchShape &shape, const void *kernarg,
                       size_t kernarg_bytes) noexcept {
  auto *place = static_cast<Place *>(recording);
  if (!place || place->too_many) return;
  place->too_many = place->launches.size() == kMostLaunches;
  if (place->too_many) return;
  place->device = device;
  const auto *bytes = static_cast<const unsigned char *>(kernarg);
  try {
    place->launches.push_back({entry, contract, shape, place->kernargs.size(), kernarg_bytes});
    place->kernargs.insert(place->kernargs.end(), bytes, bytes + kernarg_bytes);
  } catch (const std::bad_alloc &) {
    place->too_many = true;
  }
}

Status launch_kernel(const flydsl_aot_handle *handle, uint32_t entry, device::HipFunction function,
                     const device::LaunchShape &shape, void *stream, void *kernarg,
                     size_t kernarg_bytes) {
  const Status status = handle->runtime->launch(function, shape, stream, kernarg, kernarg_bytes);
  const char *name = handle->archive->string(handle->archive->entries()[entry].name);
  FLYDSL_LOG(Debug, "launch %s, grid %u x %u", name, shape.grid[0], shape.grid[1]);
  return status.ok() ? status
                     : error(status.code(), "kernel '%s': %s", name, status.message().c_str());
}

}  // namespace flydsl
