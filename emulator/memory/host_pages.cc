#include "emulator/memory/host_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <limits>

namespace flydsl::emu {
namespace {

size_t round_up_to_pages(size_t bytes) {
  const size_t page_bytes = host_page_bytes();
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

size_t host_page_bytes() {
  static const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page_bytes;
}

void *map_guarded_pages(size_t bytes) {
  const size_t page_bytes = host_page_bytes();
  if (bytes == 0 || bytes > std::numeric_limits<size_t>::max() - 4 * page_bytes) return nullptr;
  const size_t payload_bytes = round_up_to_pages(bytes);
  void *mapping = mmap(nullptr, payload_bytes + 2 * page_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  char *payload = static_cast<char *>(mapping) + page_bytes;
  if (mprotect(payload, payload_bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, payload_bytes + 2 * page_bytes);
    return nullptr;
  }
  return payload;
}

void unmap_guarded_pages(void *pages, size_t bytes) {
  const size_t page_bytes = host_page_bytes();
  munmap(static_cast<char *>(pages) - page_bytes, round_up_to_pages(bytes) + 2 * page_bytes);
}

}  // namespace flydsl::emu
