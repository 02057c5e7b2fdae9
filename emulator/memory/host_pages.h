// Whole pages from the operating system, with an inaccessible page on either side.
#pragma once

#include <cstddef>

namespace flydsl::emu {

size_t host_page_bytes();

// `bytes` rounded up to whole pages, readable and writable, zero; nullptr when the host has none.
// Address space only: pages become real when they are touched (MAP_NORESERVE), so a request may
// exceed the host's memory.
void *map_guarded_pages(size_t bytes);
// `pages` and `bytes` as given to and returned by map_guarded_pages().
void unmap_guarded_pages(void *pages, size_t bytes);

}  // namespace flydsl::emu
