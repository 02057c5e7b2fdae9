// Forks. HIP's threads, queues and mappings do not survive one: what a child finds after its parent had used a device is a runtime
// that may hang or answer anything, so it is not called there.
#pragma once

#include "src/status/status.h"

namespace flydsl::device {

// From here on a child forked from this process must not call the device runtime.
void note_device_use() noexcept;

bool forked_after_use() noexcept;

// PROCESS_FORKED in such a child. One load elsewhere.
Status check_process();

}  // namespace flydsl::device
