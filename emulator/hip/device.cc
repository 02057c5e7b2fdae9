#include "emulator/hip/device.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/engine/environment.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/current_device.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

// Compute units, memory, clocks: AMD's data sheets of the named products. LDS: CDNA 2, 3 and 4 ISA
// documents, "LDS"; the granule is LLVM's getLdsDwGranularity. L2 is per XCD (gfx90a: the die).
constexpr DeviceModel kModels[] = {
    {"gfx950", "AMD Instinct MI350X (emulated by flydsl_emu)", "gfx950:sramecc+:xnack-", 9, 5, 256,
     160 * 1024, 1280, 4 << 20, 2200000, 2000000, 8192, 288 * kGiB},
    {"gfx942", "AMD Instinct MI300X (emulated by flydsl_emu)", "gfx942:sramecc+:xnack-", 9, 4, 304,
     64 * 1024, 512, 4 << 20, 2100000, 1300000, 8192, 192 * kGiB},
    {"gfx90a", "AMD Instinct MI250 (emulated by flydsl_emu)", "gfx90a:sramecc+:xnack-", 9, 0, 104,
     64 * 1024, 512, 8 << 20, 1700000, 1600000, 4096, 64 * kGiB},
};

constexpr unsigned long kMostDevices = 64;

// `value` stays when the variable is not set.
bool read_number(const char *variable, unsigned long largest, unsigned long *value,
                 std::string *error) {
  const char *text = std::getenv(variable);
  if (text == nullptr || *text == 0) return true;
  char *end = nullptr;
  const unsigned long number = std::strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != 0 || number > largest) {
    *error = std::string(variable) + "=" + text + ": expected a number from 0 to " +
             std::to_string(largest);
    return false;
  }
  *value = number;
  return true;
}

// Of FLYDSL_EMU_ARCH, names with commas: that of the first device, of the second, ...; the last is that of the rest, too.
std::vector<const DeviceModel *> asked_models(std::string *error) {
  const char *value = std::getenv("FLYDSL_EMU_ARCH");
  std::string rest = value != nullptr && *value != 0 ? value : kModels[0].arch;
  std::vector<const DeviceModel *> models;
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    const std::string arch = rest.substr(0, comma);
    more = comma != std::string::npos;
    rest = more ? rest.substr(comma + 1) : std::string();
    const DeviceModel *model = nullptr;
    for (const DeviceModel &candidate : kModels)
      if (arch == candidate.arch) model = &candidate;
    if (model == nullptr) {
      *error = std::string("FLYDSL_EMU_ARCH=") + (value != nullptr ? value : "") +
               ": expected gfx950, gfx942 or gfx90a, or several with commas";
      return {};
    }
    models.push_back(model);
  }
  return models;
}

DeviceTable make_table() {
  complain_of_unknown_variables();
  DeviceTable table;
  const std::vector<const DeviceModel *> models = asked_models(&table.error);
  unsigned long count = 1, memory_mib = 0, compute_units = 0;
  // A smaller device may be asked for, so it is at most the smallest of them.
  int most_units = INT_MAX;
  for (const DeviceModel *model : models) most_units = std::min(most_units, model->compute_units);
  if (models.empty()) {
    // The error says why.
  } else if (read_number("FLYDSL_EMU_DEVICES", kMostDevices, &count, &table.error) &&
             read_number("FLYDSL_EMU_MEMORY_MIB", 1ul << 30, &memory_mib, &table.error) &&
             read_number("FLYDSL_EMU_COMPUTE_UNITS",
                         static_cast<unsigned long>(most_units), &compute_units,
                         &table.error) &&
             count == 0) {
    table.error = "FLYDSL_EMU_DEVICES=0";
  }
  if (!table.error.empty()) {
    std::fprintf(stderr, "flydsl_emu: no devices: %s\n", table.error.c_str());
    return table;
  }
  for (unsigned long i = 0; i < count; ++i) {
    const DeviceModel *model = models[std::min<size_t>(i, models.size() - 1)];
    auto device = std::make_unique<Device>();
    device->ordinal = static_cast<int>(i);
    device->model = model;
    device->compute_units =
        compute_units != 0 ? static_cast<int>(compute_units) : model->compute_units;
    parse_target_id(model->target_id, &device->target, &table.error);
    device->memory_bytes = memory_mib != 0 ? memory_mib << 20 : model->memory_bytes;
    device->null_stream =
        std::make_shared<Stream>(device.get(), Stream::Kind::kNull, hipStreamDefault, 0);
    table.devices.push_back(std::move(device));
  }
  return table;
}

thread_local int t_current_device = 0;

}  // namespace

const DeviceTable &device_table() {
  // Never destroyed: clients may call HIP from destructors of their own static objects.
  static const DeviceTable *const table = new DeviceTable(make_table());
  return *table;
}

int current_device() {
  return t_current_device;
}
void set_current_device(int ordinal) {
  t_current_device = ordinal;
}

Device *device_or_fail(int ordinal, hipError_t *error) {
  const DeviceTable &table = device_table();
  if (table.devices.empty()) {
    *error = fail(hipErrorNoDevice, "no devices: %s", table.error.c_str());
    return nullptr;
  }
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= table.devices.size()) {
    *error = fail(hipErrorInvalidDevice, "device %d, there are devices 0 to %zu", ordinal,
                  table.devices.size() - 1);
    return nullptr;
  }
  return table.devices[ordinal].get();
}

Device *current_device_or_fail(hipError_t *error) {
  return device_or_fail(current_device(), error);
}

void Device::set_fault(const char *why) {
  std::lock_guard<std::mutex> lock(fault_mutex_);
  if (!faulted) fault_text_ = why;
  faulted = true;
}

void Device::clear_fault() {
  std::lock_guard<std::mutex> lock(fault_mutex_);
  fault_text_.clear();
  faulted = false;
}

std::string Device::fault_text() const {
  std::lock_guard<std::mutex> lock(fault_mutex_);
  return fault_text_;
}

hipError_t device_status(const Device &device) {
  if (!device.faulted) return hipSuccess;
  return fail(hipErrorLaunchFailure, "device %d, until hipDeviceReset: %s", device.ordinal,
              device.fault_text().c_str());
}

}  // namespace flydsl::emu::hip
