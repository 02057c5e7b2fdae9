#include "src/archive/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "src/archive/checksum.h"

namespace flydsl::archive {
namespace {

bool all_zero(const void *data, size_t bytes) {
  const unsigned char *p = static_cast<const unsigned char *>(data);
  for (size_t i = 0; i < bytes; ++i) {
    if (p[i] != 0) return false;
  }
  return true;
}

}  // namespace

Status Archive::corrupt(const char *format, ...) const {
  char message[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return error(FLYDSL_AOT_ARCHIVE_CORRUPT, "'%s': %s", path_.c_str(), message);
}

Archive::~Archive() {
  ZSTD_freeDDict(dictionary_);
  if (fd_ >= 0) close(fd_);
}

Status Archive::open(const std::string &path, uint64_t abi_id, std::unique_ptr<Archive> *archive) {
  // O_NONBLOCK: a FIFO of that name must not block; it is refused below.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int number = errno;
    const bool absent = number == ENOENT || number == ENOTDIR;
    return error(absent ? FLYDSL_AOT_ARCHIVE_NOT_FOUND : FLYDSL_AOT_ARCHIVE_IO, "'%s': %s",
                 path.c_str(), errno_text(number).c_str());
  }
  std::unique_ptr<Archive> result(new Archive(path, fd));
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    return error(FLYDSL_AOT_ARCHIVE_IO, "'%s': %s", path.c_str(), errno_text(errno).c_str());
  }
  if (!S_ISREG(info.st_mode))
    return error(FLYDSL_AOT_ARCHIVE_IO, "'%s': not a regular file", path.c_str());
  FLYDSL_RETURN_IF_ERROR(result->load_header(static_cast<uint64_t>(info.st_size), abi_id));
  FLYDSL_RETURN_IF_ERROR(result->load_index());
  *archive = std::move(result);
  return {};
}

Status Archive::read_exact(uint64_t offset, void *destination, uint64_t bytes,
                           const char *what) const {
  char *to = static_cast<char *>(destination);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return error(FLYDSL_AOT_ARCHIVE_IO, "'%s': reading %s: %s", path_.c_str(), what,
                   errno_text(errno).c_str());
    }
    if (got == 0) return corrupt("the file ends inside its %s", what);
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return {};
}

Status Archive::load_header(uint64_t real_bytes, uint64_t abi_id) {
  if (real_bytes < sizeof(Header)) {
    return corrupt("%llu bytes, too short for a header",
                   static_cast<unsigned long long>(real_bytes));
  }
  FLYDSL_RETURN_IF_ERROR(read_exact(0, &header_, sizeof header_, "header"));
  if (std::memcmp(header_.magic, kMagic, sizeof kMagic) != 0)
    return corrupt("not a kernel archive (wrong magic)");
  // Before the checksum: a later version may place it elsewhere.
  if (header_.format_version != kFormatVersion) {
    return error(FLYDSL_AOT_ARCHIVE_VERSION,
                 "'%s': archive format version %u; this library reads version %u", path_.c_str(),
                 header_.format_version, kFormatVersion);
  }
  if (checksum(&header_, offsetof(Header, header_checksum)) != header_.header_checksum) {
    return corrupt("header checksum is wrong");
  }
  if (header_.header_bytes != sizeof(Header) || (header_.flags & ~kNeverExecuted) != 0 ||
      header_.reserved0 != 0 || header_.reserved1 != 0) {
    return corrupt("header size, flags or reserved fields are not those of version 1");
  }
  if (header_.abi_id != abi_id) {
    return error(FLYDSL_AOT_ARCHIVE_MISMATCH,
                 "'%s': built with library version %u and ABI id 0x%016llx; this library is "
                 "version %u with ABI id "
                 "0x%016llx, so its kernels take other arguments",
                 path_.c_str(), header_.library_version,
                 static_cast<unsigned long long>(header_.abi_id), FLYDSL_AOT_VERSION,
                 static_cast<unsigned long long>(abi_id));
  }
  if (header_.file_bytes != real_bytes) {
    return corrupt("the header says %llu bytes, the file has %llu",
                   static_cast<unsigned long long>(header_.file_bytes),
                   static_cast<unsigned long long>(real_bytes));
  }
  const size_t arch_length = strnlen(header_.arch, sizeof header_.arch);
  if (arch_length == 0 || arch_length == sizeof header_.arch ||
      !all_zero(header_.arch + arch_length, sizeof header_.arch - arch_length)) {
    return corrupt("the architecture name is not a padded string");
  }
  // Here too, not only by comparison with the entries' target ids: an archive may have no entries.
  const std::optional<TargetId> processor = parse_target_id(header_.arch);
  if (!processor || processor->processor != header_.arch)
    return corrupt("the architecture name is not that of a processor");
  if (header_.entry_count > kMaxEntries || header_.string_bytes > kMaxStringBytes ||
      header_.slot_count > kMaxSlots || header_.candidate_count > kMaxCandidates ||
      header_.tuning_slot_count > kMaxTuningSlots || header_.tuning_row_count > kMaxTuningRows ||
      header_.tuning_cell_count > kMaxTuningCells ||
      header_.dictionary_bytes > kMaxDictionaryBytes) {
    return corrupt("a count of the header is above its cap");
  }
  if (header_.slot_count != 0 && !std::has_single_bit(header_.slot_count)) {
    return corrupt("%u selection slots, not a power of two", header_.slot_count);
  }
  if (header_.tuning_slot_count != 0 && !std::has_single_bit(header_.tuning_slot_count)) {
    return corrupt("%u tuning slots, not a power of two", header_.tuning_slot_count);
  }
  if (header_.index_bytes != index_bytes(header_) ||
      header_.index_bytes > real_bytes - sizeof(Header)) {
    return corrupt("the index size does not agree with its counts or the file");
  }
  return {};
}

Status Archive::load_index() {
  std::vector<unsigned char> index(header_.index_bytes);
  FLYDSL_RETURN_IF_ERROR(read_exact(sizeof(Header), index.data(), index.size(), "index"));
  if (checksum(index.data(), index.size()) != header_.index_checksum)
    return corrupt("index checksum is wrong");
  FLYDSL_RETURN_IF_ERROR(split_index(index));
  FLYDSL_RETURN_IF_ERROR(check_entries());
  FLYDSL_RETURN_IF_ERROR(check_frames());
  FLYDSL_RETURN_IF_ERROR(check_slots());
  return check_tuning();
}

Status Archive::split_index(const std::vector<unsigned char> &index) {
  size_t at = 0;
  bool padding_is_zero = true;
  const auto skip = [&](size_t bytes) {
    padding_is_zero &= all_zero(index.data() + at + bytes, padded8(bytes) - bytes);
    at += padded8(bytes);
  };
  const auto take = [&](auto *part, size_t count) {
    using Element = typename std::remove_reference_t<decltype(*part)>::value_type;
    part->resize(count);
    if (count > 0) std::memcpy(part->data(), index.data() + at, count * sizeof(Element));
    skip(count * sizeof(Element));
  };
  take(&entries_, header_.entry_count);
  take(&strings_, header_.string_bytes);
  take(&slots_, header_.slot_count);
  take(&candidates_, header_.candidate_count);
  take(&tuning_slots_, header_.tuning_slot_count);
  take(&tuning_rows_, header_.tuning_row_count);
  take(&tuning_cells_, header_.tuning_cell_count);
  const unsigned char *dictionary = index.data() + at;
  skip(header_.dictionary_bytes);
  if (!padding_is_zero) return corrupt("padding of the index is not zero");
  if (header_.dictionary_bytes == 0) return {};
  dictionary_ = ZSTD_createDDict(dictionary, header_.dictionary_bytes);
  if (!dictionary_) return corrupt("the dictionary is not one that zstd accepts");
  return {};
}

bool Archive::string_is(uint32_t offset, std::string_view text) const {
  // Also of offsets that were not checked yet: their text and its NUL must lie inside.
  return offset < strings_.size() && text.size() < strings_.size() - offset &&
         std::memcmp(strings_.data() + offset, text.data(), text.size()) == 0 &&
         strings_[offset + text.size()] == '\0';
}

bool Archive::valid_string(uint32_t offset) const {
  if (offset >= strings_.size()) return false;
  const size_t room = strings_.size() - offset;
  const size_t limit = room < kMaxStringLength + 1 ? room : kMaxStringLength + 1;
  const char *text = strings_.data() + offset;
  const size_t length = strnlen(text, limit);
  // They reach messages and terminals.
  return length < limit &&
         std::all_of(text, text + length, [](char c) { return c >= ' ' && c <= '~'; });
}

Status Archive::check_entries() {
  targets_.reserve(entries_.size());
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    FLYDSL_RETURN_IF_ERROR(check_entry(i));
    std::optional<TargetId> target = parse_target_id(string(entries_[i].target_id));
    if (!target || target->processor != header_.arch) {
      return corrupt("entry %u: target id '%.64s' is not one of %s", i,
                     string(entries_[i].target_id), header_.arch);
    }
    targets_.push_back(std::move(*target));
  }
  return {};
}

Status Archive::check_entry(uint32_t index) const {
  const Entry &entry = entries_[index];
  for (const uint32_t offset :
       {entry.name, entry.op, entry.backend, entry.target_id, entry.symbol}) {
    if (!valid_string(offset))
      return corrupt("entry %u: string at %u is outside the strings, too long or not printable",
                     index, offset);
  }
  if (index > 0 && std::strcmp(string(entries_[index - 1].name), string(entry.name)) >= 0) {
    return corrupt("entry %u: names are not sorted and unique", index);
  }
  if (!known_grid_rule(entry.grid_rule))
    return corrupt("entry %u: unknown grid rule %u", index, entry.grid_rule);
  const uint64_t work_items = uint64_t{entry.block[0]} * entry.block[1];
  if (entry.block[0] == 0 || entry.block[1] == 0 || entry.block[2] == 0 || work_items > 1024 ||
      work_items * entry.block[2] > 1024) {
    return corrupt("entry %u: work-group of %u x %u x %u", index, entry.block[0], entry.block[1],
                   entry.block[2]);
  }
  if (entry.tile[0] == 0) return corrupt("entry %u: tile of 0 rows", index);
  if (entry.wave_size != 32 && entry.wave_size != 64)
    return corrupt("entry %u: wave size %u", index, entry.wave_size);
  if (entry.reserved0 != 0 || !all_zero(entry.reserved1, sizeof entry.reserved1)) {
    return corrupt("entry %u: reserved fields are not zero", index);
  }
  if (entry.frame_bytes == 0 || entry.frame_bytes > kMaxFrameBytes || entry.image_bytes == 0 ||
      entry.image_bytes > kMaxImageBytes) {
    return corrupt("entry %u: size of the code object is 0 or above the cap", index);
  }
  const uint64_t first = sizeof(Header) + header_.index_bytes;
  if (entry.frame_offset < first || entry.frame_offset > header_.file_bytes ||
      entry.frame_bytes > header_.file_bytes - entry.frame_offset) {
    return corrupt("entry %u: code object lies outside the file", index);
  }
  return {};
}

// Entries share a frame or have nothing in common.
Status Archive::check_frames() const {
  std::vector<const Entry *> by_offset;
  by_offset.reserve(entries_.size());
  for (const Entry &entry : entries_) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Entry *a, const Entry *b) { return a->frame_offset < b->frame_offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const Entry &a = *by_offset[i - 1], &b = *by_offset[i];
    const bool same = a.frame_offset == b.frame_offset && a.frame_bytes == b.frame_bytes &&
                      a.image_bytes == b.image_bytes && a.frame_checksum == b.frame_checksum &&
                      a.image_checksum == b.image_checksum;
    if (!same && b.frame_offset - a.frame_offset < a.frame_bytes)
      return corrupt("code objects of '%.96s' and '%.96s' overlap", string(a.name), string(b.name));
  }
  return {};
}

Status Archive::check_slots() const {
  uint32_t empty = 0;
  for (const Slot &slot : slots_) empty += slot.candidate_count == 0;
  // Probing ends at an empty slot; without one it would run in a circle.
  if (!slots_.empty() && empty == 0) return corrupt("the selection table has no empty slot");
  for (uint32_t i = 0; i < candidates_.size(); ++i) {
    const Candidate &candidate = candidates_[i];
    if (candidate.entry >= entries_.size())
      return corrupt("candidate %u: entry %u does not exist", i, candidate.entry);
    if (!std::has_single_bit(candidate.align_bytes)) {
      return corrupt("candidate %u: alignment %u is not a power of two", i, candidate.align_bytes);
    }
    if (candidate.reserved != 0) return corrupt("candidate %u: reserved field is not zero", i);
  }
  for (uint32_t i = 0; i < slots_.size(); ++i) FLYDSL_RETURN_IF_ERROR(check_slot(i));
  return {};
}

Status Archive::check_slot(uint32_t index) const {
  const Slot &slot = slots_[index];
  if (slot.candidate_count == 0) {
    return all_zero(&slot, sizeof slot) ? Status() : corrupt("slot %u: empty but not zero", index);
  }
  if (!all_zero(slot.reserved, sizeof slot.reserved))
    return corrupt("slot %u: reserved fields are not zero", index);
  if (!valid_string(slot.op))
    return corrupt("slot %u: operator name is outside the strings, too long or not printable",
                   index);
  if (slot.candidate_count > kMaxCandidatesPerSlot || slot.first_candidate > candidates_.size() ||
      slot.candidate_count > candidates_.size() - slot.first_candidate) {
    return corrupt("slot %u: candidates %u + %u are outside the table", index, slot.first_candidate,
                   slot.candidate_count);
  }
  for (uint32_t i = 0; i < slot.candidate_count; ++i) {
    const Entry &entry = entries_[candidates_[slot.first_candidate + i].entry];
    if (entry.functional_key != slot.functional_key ||
        std::strcmp(string(entry.op), string(slot.op)) != 0) {
      return corrupt("slot %u: candidate '%.96s' has another operator or key", index,
                     string(entry.name));
    }
  }
  if (find_slot(string(slot.op), slot.functional_key) != &slot) {
    return corrupt("slot %u: not reachable from its hash, or its key is listed twice", index);
  }
  return {};
}

Status Archive::check_tuning() const {
  uint32_t empty = 0;
  for (const TuningSlot &slot : tuning_slots_) empty += slot.row_count == 0;
  if (!tuning_slots_.empty() && empty == 0) return corrupt("the tuning table has no empty slot");
  // Before any slot is looked up: that compares names.
  for (uint32_t i = 0; i < tuning_slots_.size(); ++i) {
    if (tuning_slots_[i].row_count != 0 && !valid_string(tuning_slots_[i].op))
      return corrupt("tuning slot %u: its operator is no string", i);
  }
  for (uint32_t i = 0; i < tuning_rows_.size(); ++i) {
    const TuningRow &row = tuning_rows_[i];
    if (row.candidate >= candidates_.size() && row.candidate != kFirstThatFits)
      return corrupt("tuning row %u: candidate %u does not exist", i, row.candidate);
    if (!valid_string(row.origin)) return corrupt("tuning row %u: its origin is no string", i);
    if (!std::has_single_bit(row.align_bytes) || row.compute_units == 0)
      return corrupt("tuning row %u: alignment %u, %u compute units", i, row.align_bytes,
                     row.compute_units);
  }
  for (uint32_t i = 0; i < tuning_slots_.size(); ++i) FLYDSL_RETURN_IF_ERROR(check_tuning_slot(i));
  return {};
}

Status Archive::check_tuning_slot(uint32_t index) const {
  const TuningSlot &slot = tuning_slots_[index];
  if (slot.row_count == 0) {
    return all_zero(&slot, sizeof slot) ? Status()
                                        : corrupt("tuning slot %u: empty but not zero", index);
  }
  if (slot.row_count > kMaxTuningRowsPerSlot || slot.first_row > tuning_rows_.size() ||
      slot.row_count > tuning_rows_.size() - slot.first_row) {
    return corrupt("tuning slot %u: rows %u + %u are outside the table", index, slot.first_row,
                   slot.row_count);
  }
  uint64_t cells = 1;
  for (size_t axis = 0; axis < kTuningAxes; ++axis) {
    cells *= slot.extent[axis];
    if (uint32_t{slot.first[axis]} + slot.extent[axis] > 256)
      return corrupt("tuning slot %u: its box ends beyond the coordinates", index);
  }
  if (cells == 0 || slot.first_cell > tuning_cells_.size() ||
      cells > tuning_cells_.size() - slot.first_cell)
    return corrupt("tuning slot %u: its cells are outside the table", index);
  for (uint64_t i = 0; i < cells; ++i) {
    if (tuning_cells_[slot.first_cell + i] >= slot.row_count)
      return corrupt("tuning slot %u: a cell names row %u of %u", index,
                     tuning_cells_[slot.first_cell + i], slot.row_count);
  }
  for (uint32_t i = 0; i < slot.row_count; ++i) {
    const TuningRow &row = tuning_rows_[slot.first_row + i];
    if (row.candidate == kFirstThatFits) continue;
    const Entry &entry = entries_[candidates_[row.candidate].entry];
    if (std::strcmp(string(entry.op), string(slot.op)) != 0)
      return corrupt("tuning slot %u: row %u names a kernel of another operator", index, i);
  }
  if (find_tuning_slot(string(slot.op), slot.key) != &slot)
    return corrupt("tuning slot %u: not reachable from its hash, or its key is listed twice",
                   index);
  return {};
}

const TuningSlot *Archive::find_tuning_slot(std::string_view op, uint64_t key) const {
  if (tuning_slots_.empty()) return nullptr;
  const uint32_t mask = header_.tuning_slot_count - 1;
  uint32_t at = static_cast<uint32_t>(selection_hash(op, key)) & mask;
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe, at = (at + 1) & mask) {
    const TuningSlot &slot = tuning_slots_[at];
    if (slot.row_count == 0) return nullptr;
    if (slot.key == key && op == string(slot.op)) return &slot;
  }
  return nullptr;
}

const TuningRow *Archive::tuned(std::string_view op, uint64_t key, const TuningPoint &point,
                                uint32_t compute_units) const {
  const TuningSlot *slot = find_tuning_slot(op, key);
  if (!slot) return nullptr;
  const TuningCoordinates at = tuning_coordinates(point, compute_units);
  size_t cell = 0;
  for (size_t axis = 0; axis < kTuningAxes; ++axis) {
    const int last = slot->extent[axis] - 1;
    const int inside = std::clamp(int{at[axis]} - int{slot->first[axis]}, 0, last);
    cell = cell * slot->extent[axis] + static_cast<size_t>(inside);
  }
  return &tuning_rows_[slot->first_row + tuning_cells_[slot->first_cell + cell]];
}

bool Archive::has_backend(std::string_view backend) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry &entry) { return backend == string(entry.backend); });
}

uint64_t Archive::most_alignment() const {
  uint64_t most = 16;
  for (const Candidate &candidate : candidates_)
    most = std::max<uint64_t>(most, candidate.align_bytes);
  const bool tuned = std::any_of(
      tuning_slots_.begin(), tuning_slots_.end(),
      [](const TuningSlot &slot) { return slot.row_count != 0 && slot.extent[kTuningAxes - 1] > 1; });
  return tuned ? std::max(most, kMaxTuningAlignment) : most;
}

const Slot *Archive::find_slot(std::string_view op, uint64_t functional_key) const {
  if (slots_.empty()) return nullptr;
  const uint32_t mask = header_.slot_count - 1;
  uint32_t at = static_cast<uint32_t>(selection_hash(op, functional_key)) & mask;
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe, at = (at + 1) & mask) {
    const Slot &slot = slots_[at];
    if (slot.candidate_count == 0) return nullptr;
    if (slot.functional_key == functional_key && string_is(slot.op, op)) return &slot;
  }
  return nullptr;
}

std::span<const Candidate> Archive::find(std::string_view op, uint64_t functional_key) const {
  const Slot *slot = find_slot(op, functional_key);
  if (!slot) return {};
  return std::span(candidates_).subspan(slot->first_candidate, slot->candidate_count);
}

Status Archive::read(uint32_t index, std::vector<unsigned char> *image) const {
  if (!in_file(index)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "index %u: the archive has %u kernels", index,
                 file_entries());
  }
  const Entry &entry = entries_[index];
  const char *name = string(entry.name);
  std::vector<unsigned char> frame(entry.frame_bytes);
  FLYDSL_RETURN_IF_ERROR(
      read_exact(entry.frame_offset, frame.data(), frame.size(), "code objects"));
  if (checksum(frame.data(), frame.size()) != entry.frame_checksum) {
    return corrupt("'%.96s': checksum of the compressed code object is wrong", name);
  }
  // zstd would inflate what follows the first frame too.
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size())
    return corrupt("'%.96s': the compressed code object is not one zstd frame", name);
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != entry.image_bytes) {
    return corrupt("'%.96s': the zstd frame has another content size than the index says", name);
  }
  std::vector<unsigned char> inflated(entry.image_bytes);
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context) return error(FLYDSL_AOT_OUT_OF_HOST_MEMORY, "no memory for a zstd context");
  const size_t bytes = ZSTD_decompress_usingDDict(context.get(), inflated.data(), inflated.size(),
                                                  frame.data(), frame.size(), dictionary_);
  if (ZSTD_isError(bytes) || bytes != inflated.size()) {
    return corrupt("'%.96s': zstd: %s", name,
                   ZSTD_isError(bytes) ? ZSTD_getErrorName(bytes) : "wrong size");
  }
  if (checksum(inflated.data(), inflated.size()) != entry.image_checksum) {
    return corrupt("'%.96s': checksum of the code object is wrong", name);
  }
  *image = std::move(inflated);
  return {};
}

}  // namespace flydsl::archive
