#include "emulator/hip/readable_memory.h"

#include <cstdint>
#include <cstdio>
#include <string>

namespace flydsl::emu::hip {

size_t readable_bytes(const void *address) {
  std::FILE *map = std::fopen("/proc/self/maps", "re");
  if (map == nullptr) return SIZE_MAX;
  const uint64_t start = reinterpret_cast<uint64_t>(address);
  uint64_t reached = start;
  char line[512];
  bool line_start = true;
  while (std::fgets(line, sizeof line, map) != nullptr) {
    unsigned long long begin = 0, end = 0;
    char readable = 0;
    const bool parsed =
        line_start && std::sscanf(line, "%llx-%llx %c", &begin, &end, &readable) == 3;
    line_start =
        std::char_traits<char>::find(line, std::char_traits<char>::length(line), '\n') != nullptr;
    if (!parsed || end <= reached) continue;
    if (begin > reached || readable != 'r') break;  // the map is sorted by address
    reached = end;
  }
  std::fclose(map);
  return reached - start;
}

}  // namespace flydsl::emu::hip
