#include "emulator/hip/device_properties.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

namespace flydsl::emu::hip {
namespace {

// Bits of hipDeviceArch_t that AMD's runtime sets for these devices: 32- and 64-bit atomics,
// doubles, vote, ballot, shuffle (0-10), system fence (12), 3-D grids (15).
constexpr unsigned kArchBits = 0x7ff | 1u << 12 | 1u << 15;
constexpr int kRegistersPerBlock = 65536;  // as rocm reports
constexpr int kRegistersPerComputeUnit = kSimdsPerComputeUnit * kVgprsPerSimdLane * kWaveSize;
constexpr int kItemsPerComputeUnit = kSimdsPerComputeUnit * kWavesPerSimd * kWaveSize;
constexpr int kTimestampKhz = 100000;  // s_memrealtime counts at 100 MHz
constexpr int kLargestPitchBytes = INT_MAX;
constexpr int kFirstPciBus = 1;

// What both layouts call by the same name.
template <typename Properties>
void fill_common(const Device &device, Properties *p) {
  const DeviceModel &model = *device.model;
  *p = {};
  std::snprintf(p->name, sizeof p->name, "%s", model.name);
  std::snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", model.target_id);
  p->totalGlobalMem = device.memory_bytes;
  p->sharedMemPerBlock = model.lds_bytes;
  p->maxSharedMemoryPerMultiProcessor = model.lds_bytes;
  p->regsPerBlock = kRegistersPerBlock;
  p->warpSize = kWaveSize;
  p->maxThreadsPerBlock = kMaxBlockItems;
  std::fill_n(p->maxThreadsDim, 3, kMaxBlockItems);
  p->maxGridSize[0] = kMaxGridX;
  p->maxGridSize[1] = p->maxGridSize[2] = kMaxGridYZ;
  p->clockRate = model.clock_khz;
  p->memoryClockRate = model.memory_clock_khz;
  p->memoryBusWidth = model.memory_bus_bits;
  p->totalConstMem = INT_MAX;
  p->major = model.major;
  p->minor = model.minor;
  p->multiProcessorCount = device.compute_units;
  p->l2CacheSize = model.l2_bytes;
  p->maxThreadsPerMultiProcessor = kItemsPerComputeUnit;
  p->clockInstructionRate = kTimestampKhz;
  p->arch = kArchBits;
  p->concurrentKernels = 1;
  p->pciBusID = kFirstPciBus + device.ordinal;
  p->canMapHostMemory = 1;
  p->memPitch = kLargestPitchBytes;
  p->textureAlignment = 256;
  p->texturePitchAlignment = 256;
  p->ECCEnabled = 1;
  p->isLargeBar = 1;
}

}  // namespace

void fill_properties(const Device &device, hipDeviceProp_tR0000 *properties) {
  fill_common(device, properties);
  properties->gcnArch = device.model->major * 100 + device.model->minor * 10;  // gfx950 -> 950
}

void fill_properties(const Device &device, hipDeviceProp_tR0600 *properties) {
  fill_common(device, properties);
  // 16 bytes, as text without a terminator.
  char uuid[sizeof properties->uuid + 1];
  std::snprintf(uuid, sizeof uuid, "flydsl_emu_%05d", device.ordinal);
  std::memcpy(properties->uuid, uuid, sizeof properties->uuid);
  properties->sharedMemPerMultiprocessor = device.model->lds_bytes;
  properties->sharedMemPerBlockOptin = device.model->lds_bytes;
  properties->regsPerMultiprocessor = kRegistersPerComputeUnit;
  properties->maxBlocksPerMultiProcessor = kMaxGroupsPerComputeUnit;
  properties->unifiedAddressing = 1;
  properties->memoryPoolsSupported = 1;
  properties->asyncEngineCount = 1;
}

bool device_attribute(const Device &device, hipDeviceAttribute_t attribute, int *value) {
  hipDeviceProp_tR0600 p;
  fill_properties(device, &p);
  const auto clamped = [](size_t bytes) {
    return static_cast<int>(std::min<size_t>(bytes, INT_MAX));
  };
  switch (attribute) {
    case hipDeviceAttributeEccEnabled:
      *value = p.ECCEnabled;
      break;
    case hipDeviceAttributeAsyncEngineCount:
      *value = p.asyncEngineCount;
      break;
    case hipDeviceAttributeCanMapHostMemory:
      *value = p.canMapHostMemory;
      break;
    case hipDeviceAttributeCanUseHostPointerForRegisteredMem:
      *value = 0;
      break;
    case hipDeviceAttributeClockRate:
      *value = p.clockRate;
      break;
    case hipDeviceAttributeComputeMode:
      *value = p.computeMode;
      break;
    case hipDeviceAttributeConcurrentKernels:
      *value = p.concurrentKernels;
      break;
    case hipDeviceAttributeConcurrentManagedAccess:
      *value = p.concurrentManagedAccess;
      break;
    case hipDeviceAttributeCooperativeLaunch:
      *value = p.cooperativeLaunch;
      break;
    case hipDeviceAttributeIntegrated:
      *value = p.integrated;
      break;
    case hipDeviceAttributeIsMultiGpuBoard:
      *value = p.isMultiGpuBoard;
      break;
    case hipDeviceAttributeKernelExecTimeout:
      *value = p.kernelExecTimeoutEnabled;
      break;
    case hipDeviceAttributeL2CacheSize:
      *value = p.l2CacheSize;
      break;
    case hipDeviceAttributeComputeCapabilityMajor:
      *value = p.major;
      break;
    case hipDeviceAttributeComputeCapabilityMinor:
      *value = p.minor;
      break;
    case hipDeviceAttributeManagedMemory:
      *value = p.managedMemory;
      break;
    case hipDeviceAttributeMaxBlocksPerMultiProcessor:
      *value = p.maxBlocksPerMultiProcessor;
      break;
    case hipDeviceAttributeMaxBlockDimX:
      *value = p.maxThreadsDim[0];
      break;
    case hipDeviceAttributeMaxBlockDimY:
      *value = p.maxThreadsDim[1];
      break;
    case hipDeviceAttributeMaxBlockDimZ:
      *value = p.maxThreadsDim[2];
      break;
    case hipDeviceAttributeMaxGridDimX:
      *value = p.maxGridSize[0];
      break;
    case hipDeviceAttributeMaxGridDimY:
      *value = p.maxGridSize[1];
      break;
    case hipDeviceAttributeMaxGridDimZ:
      *value = p.maxGridSize[2];
      break;
    case hipDeviceAttributeMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      break;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      break;
    case hipDeviceAttributeMaxPitch:
      *value = kLargestPitchBytes;
      break;
    case hipDeviceAttributeMemoryBusWidth:
      *value = p.memoryBusWidth;
      break;
    case hipDeviceAttributeMemoryClockRate:
      *value = p.memoryClockRate;
      break;
    case hipDeviceAttributeMultiprocessorCount:
    case hipDeviceAttributePhysicalMultiProcessorCount:
      *value = p.multiProcessorCount;
      break;
    case hipDeviceAttributePageableMemoryAccess:
      *value = p.pageableMemoryAccess;
      break;
    case hipDeviceAttributePciBusId:
      *value = p.pciBusID;
      break;
    case hipDeviceAttributePciDeviceId:
      *value = p.pciDeviceID;
      break;
    case hipDeviceAttributePciDomainID:
      *value = p.pciDomainID;
      break;
    case hipDeviceAttributeMaxRegistersPerBlock:
      *value = p.regsPerBlock;
      break;
    case hipDeviceAttributeMaxRegistersPerMultiprocessor:
      *value = p.regsPerMultiprocessor;
      break;
    case hipDeviceAttributeReservedSharedMemPerBlock:
      *value = 0;
      break;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
    case hipDeviceAttributeSharedMemPerBlockOptin:
    case hipDeviceAttributeSharedMemPerMultiprocessor:
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      *value = device.model->lds_bytes;
      break;
    case hipDeviceAttributeStreamPrioritiesSupported:
      *value = p.streamPrioritiesSupported;
      break;
    case hipDeviceAttributeTotalConstantMemory:
      *value = clamped(p.totalConstMem);
      break;
    case hipDeviceAttributeTotalGlobalMem:
      *value = clamped(p.totalGlobalMem);
      break;
    case hipDeviceAttributeUnifiedAddressing:
      *value = p.unifiedAddressing;
      break;
    case hipDeviceAttributeWarpSize:
      *value = p.warpSize;
      break;
    case hipDeviceAttributeMemoryPoolsSupported:
      *value = p.memoryPoolsSupported;
      break;
    case hipDeviceAttributeClockInstructionRate:
    case hipDeviceAttributeWallClockRate:
      *value = p.clockInstructionRate;
      break;
    case hipDeviceAttributeIsLargeBar:
      *value = p.isLargeBar;
      break;
    case hipDeviceAttributeAsicRevision:
      *value = p.asicRevision;
      break;
    case hipDeviceAttributeCanUseStreamWaitValue:
      *value = 0;
      break;
    case hipDeviceAttributeImageSupport:
      *value = 0;
      break;
    case hipDeviceAttributeFineGrainSupport:
      *value = 1;
      break;
    default:
      return false;
  }
  return true;
}

}  // namespace flydsl::emu::hip
