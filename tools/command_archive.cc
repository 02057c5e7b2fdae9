#include <cinttypes>
#include <cstdio>
#include <memory>

#include "tools/commands.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using Archive = std::unique_ptr<flydsl_aot_archive, decltype(&flydsl_aot_archive_close)>;

Archive open_archive(const std::string &path) {
  flydsl_aot_archive *archive = nullptr;
  check(flydsl_aot_archive_open(path.c_str(), &archive), path);
  return Archive(archive, flydsl_aot_archive_close);
}

flydsl_aot_archive_entry entry_of(const Archive &archive, uint32_t index, const std::string &path) {
  flydsl_aot_archive_entry entry{};
  entry.struct_size = sizeof entry;
  check(flydsl_aot_archive_get(archive.get(), index, &entry), path);
  return entry;
}

}  // namespace

void command_archive_list(const std::string &path) {
  const Archive archive = open_archive(path);
  const uint32_t count = flydsl_aot_archive_count(archive.get());
  std::printf("%s: %s, %" PRIu32 " kernels%s\n", path.c_str(), flydsl_aot_archive_arch(archive.get()),
              count, flydsl_aot_archive_executed(archive.get()) ? "" : ", compiled, not executed");
  std::printf("%-52s %-20s %-8s %-8s %5s %5s %6s %7s %9s %9s\n", "kernel", "operator", "backend",
              "target", "VGPRs", "SGPRs", "LDS", "scratch", "stored", "image");
  for (uint32_t i = 0; i < count; ++i) {
    const flydsl_aot_archive_entry e = entry_of(archive, i, path);
    std::printf("%-52s %-20s %-8s %-8s %5" PRIu32 " %5" PRIu32 " %6" PRIu32 " %7" PRIu32
                " %9" PRIu64 " %9" PRIu64 "\n",
                e.name, e.op, e.backend, e.target_id, e.vgpr_count, e.sgpr_count,
                e.lds_static_bytes + e.lds_dynamic_bytes, e.scratch_bytes, e.compressed_bytes,
                e.image_bytes);
  }
}

void command_archive_verify(const std::string &path) {
  const Archive archive = open_archive(path);
  const uint32_t count = flydsl_aot_archive_count(archive.get());
  uint64_t image_bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const flydsl_aot_archive_entry entry = entry_of(archive, i, path);
    check(flydsl_aot_archive_read(archive.get(), i, nullptr, 0), path + ": " + entry.name);
    image_bytes += entry.image_bytes;
  }
  std::printf("%s: good, %s, %" PRIu32 " kernels, %" PRIu64
              " bytes of code objects read, checked and inflated\n",
              path.c_str(), flydsl_aot_archive_arch(archive.get()), count, image_bytes);
}

}  // namespace flydsl::tools
