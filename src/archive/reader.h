// Reading a kernel archive (docs/archive-format.md). The file is data from outside: every offset,
// count and string is checked before use, and damage of any kind is a Status.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/archive/format.h"
#include "src/archive/target_id.h"
#include "src/archive/tuning.h"
#include "src/status/status.h"

struct ZSTD_DDict_s;

namespace flydsl::archive {

// A kernel beside those of the file, whose code object comes from elsewhere.
struct Addition {
  std::string_view name, op, backend, target_id, symbol;
  Entry entry{};     // but for its strings; it has no frame
  Candidate fits{};  // but for its entry
};

class Archive {
 public:
  // Opens the file, reads and verifies header and index into private memory; code objects are not
  // read. `abi_id` is the caller's own. Errors: ARCHIVE_NOT_FOUND (no such file), ARCHIVE_IO,
  // ARCHIVE_CORRUPT, ARCHIVE_VERSION, ARCHIVE_MISMATCH; every message begins with the path.
  static Status open(const std::string &path, uint64_t abi_id, std::unique_ptr<Archive> *archive);
  // Of no file: without a path, without kernels. `executed`: whether those that are added were.
  static std::unique_ptr<Archive> without_file(const std::string &arch, bool executed);
  ~Archive();
  Archive(const Archive &) = delete;
  Archive &operator=(const Archive &) = delete;

  const std::string &path() const { return path_; }
  const char *arch() const { return header_.arch; }
  // Whether kernels of the architecture were executed, on a device or the emulator, before they were handed out.
  bool executed() const { return !(header_.flags & kNeverExecuted); }
  uint32_t library_version() const { return header_.library_version; }

  std::span<const Entry> entries() const { return entries_; }
  std::span<const Candidate> candidates() const { return candidates_; }
  // Whether some kernel is of that backend.
  bool has_backend(std::string_view backend) const;
  // NUL-terminated string at an offset found in this archive's entries or slots.
  const char *string(uint32_t offset) const { return strings_.data() + offset; }
  const TargetId &target(uint32_t entry) const { return targets_[entry]; }

  // The candidates listed for a key, best first; empty if the key is not in the table. O(1), no
  // allocation.
  std::span<const Candidate> find(std::string_view op, uint64_t functional_key) const;

  // Adds kernels to the index, after those of the file; of names that the file has there is no second. Once, before anything of
  // the index is handed out.
  void add(std::span<const Addition> additions);
  uint32_t file_entries() const { return header_.entry_count; }
  bool in_file(uint32_t entry) const { return entry < header_.entry_count; }
  // As find(), of the kernels that were added, in the order in which they were.
  std::span<const Candidate> find_added(std::string_view op, uint64_t functional_key) const;

  // The row that decides on a problem of this key, by the nearest-row rule of docs/archive-format.md; null if nobody
  // tuned one. O(1), no allocation. `compute_units` is above 0.
  const TuningRow *tuned(std::string_view op, uint64_t key, const TuningPoint &point,
                         uint32_t compute_units) const;
  std::span<const TuningRow> tuning_rows() const { return tuning_rows_; }
  // Selection does not tell apart addresses and strides that are multiples of this power of two, 16 or more.
  uint64_t most_alignment() const;
  // Each problem gets the first candidate that fits.
  void ignore_tuning() { tuning_slots_.clear(); }

  // Reads one code object of the file: frame, checksum, inflate, checksum. Safe from several threads at a time.
  Status read(uint32_t entry, std::vector<unsigned char> *image) const;

 private:
  Archive(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  Status read_exact(uint64_t offset, void *destination, uint64_t bytes, const char *what) const;
  Status load_header(uint64_t real_bytes, uint64_t abi_id);
  Status load_index();
  Status split_index(const std::vector<unsigned char> &index);
  Status check_entries();
  Status check_entry(uint32_t index) const;
  Status check_frames() const;
  Status check_slots() const;
  Status check_slot(uint32_t index) const;
  Status check_tuning() const;
  Status check_tuning_slot(uint32_t index) const;
  const TuningSlot *find_tuning_slot(std::string_view op, uint64_t key) const;
  bool valid_string(uint32_t offset) const;
  bool string_is(uint32_t offset, std::string_view text) const;
  const Slot *find_slot(std::string_view op, uint64_t functional_key) const;
  __attribute__((format(printf, 2, 3))) Status corrupt(const char *format, ...) const;

  std::string path_;
  int fd_;
  Header header_{};
  std::vector<Entry> entries_;
  std::vector<char> strings_;
  std::vector<Slot> slots_;
  std::vector<Candidate> candidates_;
  std::vector<TuningSlot> tuning_slots_;
  std::vector<TuningRow> tuning_rows_;
  std::vector<uint8_t> tuning_cells_;
  std::vector<TargetId> targets_;
  std::vector<Slot> added_;  // in the order of operators and keys
  ZSTD_DDict_s *dictionary_ = nullptr;
};

}  // namespace flydsl::archive
