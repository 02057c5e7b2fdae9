// The two layouts of hipDeviceProp_t, filled from one description.
#pragma once

#include "emulator/hip/device.h"
#include "emulator/hip/device_properties_r0000.h"
#include "emulator/hip/device_properties_r0600.h"

namespace flydsl::emu::hip {

void fill_properties(const Device &device, hipDeviceProp_tR0000 *properties);
void fill_properties(const Device &device, hipDeviceProp_tR0600 *properties);
// False when the attribute is none that the emulated device has.
bool device_attribute(const Device &device, hipDeviceAttribute_t attribute, int *value);

}  // namespace flydsl::emu::hip
