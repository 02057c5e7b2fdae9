// The emulated devices: what they claim to be, and their state.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/hip/hip_abi.h"
#include "emulator/loader/target_id.h"

namespace flydsl::emu::hip {

class Stream;

// Constants of one architecture.
struct DeviceModel {
  const char *arch;
  const char *name;
  const char *target_id;
  int major, minor;
  int compute_units;
  int lds_bytes;          // per work-group and per compute unit
  int lds_granule_bytes;  // unit of LDS allocation
  int l2_bytes;           // per XCD
  int clock_khz;
  int memory_clock_khz;
  int memory_bus_bits;
  size_t memory_bytes;
};

constexpr int kWaveSize = 64;
constexpr int kSimdsPerComputeUnit = 4;
constexpr int kWavesPerSimd = 8;        // gfx90a and later
constexpr int kVgprsPerSimdLane = 512;  // architectural and accumulation registers share one file
constexpr int kVgprGranule = 8;
constexpr int kMaxGroupsPerComputeUnit = 16;  // of more than one wave: one barrier resource each
constexpr int kMaxBlockItems = 1024;
constexpr unsigned kMaxGridX = 2147483647;
constexpr unsigned kMaxGridYZ = 65535;

struct Device {
  int ordinal = 0;
  const DeviceModel *model = nullptr;
  TargetId target;
  int compute_units = 0;
  size_t memory_bytes = 0;
  std::atomic<size_t> used_bytes{0};
  // A kernel or a queued copy faulted: queued work is dropped, and every call that submits or waits
  // reports it until hipDeviceReset.
  std::atomic<bool> faulted{false};
  void set_fault(const char *why);
  void clear_fault();
  std::string fault_text() const;
  std::shared_ptr<Stream> null_stream;

 private:
  mutable std::mutex fault_mutex_;
  std::string fault_text_;
};

// All devices, from the environment at first use: FLYDSL_EMU_ARCH (gfx950), FLYDSL_EMU_DEVICES (1),
// FLYDSL_EMU_COMPUTE_UNITS and FLYDSL_EMU_MEMORY_MIB (what the model has). Empty, with a reason, when a variable is wrong.
struct DeviceTable {
  std::vector<std::unique_ptr<Device>> devices;
  std::string error;
};
const DeviceTable &device_table();

// The device `ordinal`, or nullptr after fail(); and the calling thread's current one.
Device *device_or_fail(int ordinal, hipError_t *error);
Device *current_device_or_fail(hipError_t *error);

// hipErrorLaunchFailure when a kernel faulted on it, else hipSuccess.
hipError_t device_status(const Device &device);

}  // namespace flydsl::emu::hip
