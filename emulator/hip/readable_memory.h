// How far memory can be read from an address, by the process's own map. hipModuleLoadData gets no
// size, and an image whose headers lie must not make the loader read past what is mapped.
#pragma once

#include <cstddef>

namespace flydsl::emu::hip {

// Bytes from `address` to the end of the readable mappings that adjoin; 0 when nothing is readable
// there; SIZE_MAX when the map itself cannot be read.
size_t readable_bytes(const void *address);

}  // namespace flydsl::emu::hip
