// What compiled HIP programs register before main(): their embedded code objects, the host-side
// stubs of kernels and the shadows of device variables.
#pragma once

#include <cstddef>
#include <memory>

#include "emulator/hip/device.h"
#include "emulator/hip/module.h"

namespace flydsl::emu::hip {

// The kernel behind a host-side stub, on a device: its code object is loaded at first use there.
// nullptr after fail().
std::shared_ptr<Function> registered_function(const void *stub, const Device &device,
                                              hipError_t *error);
// The memory of a device variable, by the address of its host shadow.
hipError_t registered_variable(const void *shadow, const Device &device, void **address,
                               size_t *bytes);

}  // namespace flydsl::emu::hip
