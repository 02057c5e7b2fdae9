// Access between devices. Every kernel can reach all memory here; what clients set is kept and
// checked as HIP does.
#include <mutex>
#include <set>
#include <utility>

#include "emulator/hip/api_call.h"
#include "emulator/hip/current_device.h"
#include "emulator/hip/device.h"

namespace flydsl::emu::hip {
namespace {

struct PeerAccess {
  std::mutex mutex;
  std::set<std::pair<int, int>> enabled;  // device, peer
};
PeerAccess &peer_access() {
  static auto *const access = new PeerAccess;  // never destroyed, as with device_table()
  return *access;
}

// The current device and another one.
hipError_t check_peer(int peer, int *device) {
  hipError_t error = hipSuccess;
  const Device *current = current_device_or_fail(&error);
  if (current == nullptr || device_or_fail(peer, &error) == nullptr) return error;
  if (current->ordinal == peer)
    return fail(hipErrorInvalidDevice, "device %d is the current device", peer);
  *device = current->ordinal;
  return hipSuccess;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipDeviceCanAccessPeer(int *can, int ordinal, int peer) {
  return api_call([&] {
    if (can == nullptr) return fail(hipErrorInvalidValue, "the result is null");
    hipError_t error = hipSuccess;
    if (device_or_fail(ordinal, &error) == nullptr || device_or_fail(peer, &error) == nullptr)
      return error;
    *can = ordinal != peer;
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return api_call([&] {
    if (flags != 0) return fail(hipErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    int device = 0;
    const hipError_t error = check_peer(peer, &device);
    if (error != hipSuccess) return error;
    std::lock_guard<std::mutex> lock(peer_access().mutex);
    if (peer_access().enabled.insert({device, peer}).second) return hipSuccess;
    return fail(hipErrorPeerAccessAlreadyEnabled, "from device %d to device %d", device, peer);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceDisablePeerAccess(int peer) {
  return api_call([&] {
    int device = 0;
    const hipError_t error = check_peer(peer, &device);
    if (error != hipSuccess) return error;
    std::lock_guard<std::mutex> lock(peer_access().mutex);
    if (peer_access().enabled.erase({device, peer}) != 0) return hipSuccess;
    return fail(hipErrorPeerAccessNotEnabled, "from device %d to device %d", device, peer);
  });
}
