// The calling thread's current device (hipSetDevice).
#pragma once

namespace flydsl::emu::hip {

int current_device();
void set_current_device(int ordinal);

}  // namespace flydsl::emu::hip
