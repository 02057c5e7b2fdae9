// Reading an archive without a device.
#include "flydsl_aot/archive.h"

#include <cstring>

#include "flydsl_aot_generated/abi.h"
#include "src/archive/reader.h"
#include "v2src/struct_size.h"

struct flydsl_aot_archive {
  std::unique_ptr<flydsl::archive::Archive> reader;
};

namespace flydsl {
namespace {

Status open(const char *path, flydsl_aot_archive **out) {
  if (!path) return error(FLYDSL_AOT_INVALID_ARGUMENT, "path is NULL");
  auto result = std::make_unique<flydsl_aot_archive>();
  FLYDSL_RETURN_IF_ERROR(
      archive::Archive::open(path, FLYDSL_AOT_GENERATED_ABI_ID, &result->reader));
  *out = result.release();
  return {};
}

Status check_index(const flydsl_aot_archive *archive, uint32_t index) {
  if (!archive) return error(FLYDSL_AOT_INVALID_ARGUMENT, "archive is NULL");
  const size_t count = archive->reader->entries().size();
  if (index < count) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "index is %u; the archive has %zu kernels", index,
               count);
}

Status get(const flydsl_aot_archive *archive, uint32_t index, flydsl_aot_archive_entry *caller) {
  FLYDSL_RETURN_IF_ERROR(check_index(archive, index));
  FLYDSL_RETURN_IF_ERROR(check_output_struct("archive_entry", caller));
  const archive::Archive &reader = *archive->reader;
  const archive::Entry &entry = reader.entries()[index];
  flydsl_aot_archive_entry result{};
  result.wave_size = entry.wave_size;
  result.name = reader.string(entry.name);
  result.op = reader.string(entry.op);
  result.backend = reader.string(entry.backend);
  result.target_id = reader.string(entry.target_id);
  result.symbol = reader.string(entry.symbol);
  // One of the rules that the reader lets through.
  result.grid_rule =
      entry.grid_rule == archive::kGridRulePersistent ? "persistent" : "linear_tiles";
  result.kernarg_layout_id = entry.kernarg_layout_id;
  result.kernarg_bytes = entry.kernarg_bytes;
  std::memcpy(result.block, entry.block, sizeof result.block);
  std::memcpy(result.tile, entry.tile, sizeof result.tile);
  result.lds_static_bytes = entry.lds_static_bytes;
  result.lds_dynamic_bytes = entry.lds_dynamic_bytes;
  result.scratch_bytes = entry.scratch_bytes;
  result.vgpr_count = entry.vgpr_count;
  result.sgpr_count = entry.sgpr_count;
  result.compressed_bytes = entry.frame_bytes;
  result.image_bytes = entry.image_bytes;
  write_struct(result, caller);
  return {};
}

Status read(const flydsl_aot_archive *archive, uint32_t index, void *image, size_t capacity) {
  FLYDSL_RETURN_IF_ERROR(check_index(archive, index));
  const uint64_t bytes = archive->reader->entries()[index].image_bytes;
  if (image && capacity < bytes) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "capacity is %zu bytes; the code object has %llu",
                 capacity, static_cast<unsigned long long>(bytes));
  }
  std::vector<unsigned char> inflated;
  FLYDSL_RETURN_IF_ERROR(archive->reader->read(index, &inflated));
  if (image) std::memcpy(image, inflated.data(), inflated.size());
  return {};
}

}  // namespace
}  // namespace flydsl

extern "C" {

flydsl_aot_status flydsl_aot_archive_open(const char *path, flydsl_aot_archive **archive) {
  if (!archive) return flydsl::publish(__func__, FLYDSL_AOT_INVALID_ARGUMENT, "archive is NULL");
  *archive = nullptr;
  return flydsl::guarded(__func__, [&] { return flydsl::open(path, archive); });
}

void flydsl_aot_archive_close(flydsl_aot_archive *archive) {
  delete archive;
}

uint32_t flydsl_aot_archive_count(const flydsl_aot_archive *archive) {
  return archive ? static_cast<uint32_t>(archive->reader->entries().size()) : 0;
}

const char *flydsl_aot_archive_arch(const flydsl_aot_archive *archive) {
  return archive ? archive->reader->arch() : "";
}

uint32_t flydsl_aot_archive_executed(const flydsl_aot_archive *archive) {
  return archive && archive->reader->executed() ? 1 : 0;
}

flydsl_aot_status flydsl_aot_archive_get(const flydsl_aot_archive *archive, uint32_t index,
                                         flydsl_aot_archive_entry *entry) {
  return flydsl::guarded(__func__, [&] { return flydsl::get(archive, index, entry); });
}

flydsl_aot_status flydsl_aot_archive_read(const flydsl_aot_archive *archive, uint32_t index,
                                          void *image, size_t capacity) {
  return flydsl::guarded(__func__, [&] { return flydsl::read(archive, index, image, capacity); });
}

}  // extern "C"
