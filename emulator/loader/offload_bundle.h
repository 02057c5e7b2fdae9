// Clang offload bundles: several code objects in one file, one per target. Format: Clang
// documentation, "Clang Offload Bundler", section "Bundled Binary File Layout" (the uncompressed
// form, "__CLANG_OFFLOAD_BUNDLE__"; compressed_bundle.h has the other).
#pragma once

#include <cstddef>
#include <string>

#include "emulator/loader/target_id.h"

namespace flydsl::emu {

bool looks_like_offload_bundle(const void *data, size_t bytes);

// How many of `readable` bytes the bundle takes by its own table; 0 when the table is damaged.
size_t offload_bundle_bytes(const void *data, size_t readable);

struct BundleEntry {
  const void *data = nullptr;
  size_t bytes = 0;
};

// The entry that fits the device best (the most features stated). False with a reason, which lists
// the targets, if none fits; `damaged` tells a broken bundle from one for other devices.
bool pick_bundle_entry(const void *data, size_t bytes, const TargetId &device, BundleEntry *entry,
                       bool *damaged, std::string *error);

}  // namespace flydsl::emu
