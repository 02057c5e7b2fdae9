#include "src/archive/writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "src/archive/checksum.h"
#include "src/archive/compress.h"
#include "src/archive/target_id.h"
#include "src/archive/tuning.h"

namespace flydsl::archive {
namespace {

Status invalid(const std::string &message) {
  return {FLYDSL_AOT_INVALID_ARGUMENT, message};
}

// The string part: each distinct string once, in the order of first use.
class Strings {
 public:
  uint32_t add(const std::string &value) {
    const auto [at, is_new] = offsets_.try_emplace(value, static_cast<uint32_t>(bytes_.size()));
    if (is_new) bytes_.insert(bytes_.end(), value.c_str(), value.c_str() + value.size() + 1);
    return at->second;
  }
  const std::vector<char> &bytes() const { return bytes_; }

 private:
  std::map<std::string, uint32_t> offsets_;
  std::vector<char> bytes_;
};

Status check_string(const char *what, const std::string &value) {
  if (value.empty()) return invalid(std::string(what) + " is empty");
  if (value.size() > kMaxStringLength)
    return invalid(std::string(what) + " '" + value + "' is too long");
  if (value.find('\0') != std::string::npos) return invalid(std::string(what) + " contains a NUL");
  return {};
}

Status check_kernel(const ArchiveSpec &spec, const KernelSpec &kernel) {
  FLYDSL_RETURN_IF_ERROR(check_string("kernel name", kernel.name));
  const std::string label = "kernel '" + kernel.name + "': ";
  FLYDSL_RETURN_IF_ERROR(check_string((label + "op").c_str(), kernel.op));
  FLYDSL_RETURN_IF_ERROR(check_string((label + "backend").c_str(), kernel.backend));
  FLYDSL_RETURN_IF_ERROR(check_string((label + "symbol").c_str(), kernel.symbol));
  const std::optional<TargetId> target = parse_target_id(kernel.target_id);
  if (!target || target->processor != spec.arch) {
    return invalid(label + "target id '" + kernel.target_id + "' is not one of " + spec.arch);
  }
  if (!known_grid_rule(kernel.grid_rule)) return invalid(label + "unknown grid rule");
  const uint64_t work_items = uint64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2];
  if (work_items == 0 || work_items > 1024)
    return invalid(label + "work-group size is 0 or above 1024");
  if (kernel.tile[0] == 0) return invalid(label + "tile of 0 rows");
  if (kernel.wave_size != 32 && kernel.wave_size != 64)
    return invalid(label + "wave size is neither 32 nor 64");
  if (kernel.image.empty()) return invalid(label + "empty code object");
  if (kernel.image.size() > kMaxImageBytes)
    return invalid(label + "code object is above the cap of 64 MiB");
  return {};
}

Status check_candidate(const SelectionSpec &row, const KernelSpec &kernel,
                       const CandidateSpec &candidate) {
  const std::string label = "selection of " + row.op + ", candidate '" + kernel.name + "': ";
  if (kernel.op != row.op) return invalid(label + "the kernel belongs to operator " + kernel.op);
  if (kernel.functional_key != row.functional_key)
    return invalid(label + "the kernel has another functional key");
  if (!std::has_single_bit(candidate.align_bytes))
    return invalid(label + "alignment is not a power of two");
  if (candidate.seq_q_min > candidate.seq_q_max || candidate.seq_k_min > candidate.seq_k_max) {
    return invalid(label + "empty range of sequence lengths");
  }
  return {};
}

// Everything but the code objects and the header's sizes.
struct Tables {
  std::vector<const KernelSpec *> kernels;  // sorted by name, as `entries`
  std::vector<Entry> entries;
  Strings strings;
  std::vector<Slot> slots;
  std::vector<Candidate> candidates;
};

TuningPoint point_of(const TuningRow &row) {
  return {row.rows, row.keys, row.parallel, row.align_bytes};
}

// The nearest-row rule (docs/archive-format.md): the row with the least distance from a cell's centre, the first of equal ones.
size_t nearest_row(std::span<const TuningRow> rows, const TuningCoordinates &cell) {
  constexpr double kAlignmentWeight = 4;
  const auto place = [](double n) { return n > 0 ? 2 * std::log2(n) : 0.0; };
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < rows.size(); ++i) {
    const TuningRow &row = rows[i];
    const double parallel =
        static_cast<double>(row.parallel) * kTuningComputeUnits / row.compute_units;
    const double at[kTuningAxes] = {
        place(static_cast<double>(row.rows)), place(static_cast<double>(row.keys)), place(parallel),
        place(static_cast<double>(std::min<uint64_t>(row.align_bytes, kMaxTuningAlignment)))};
    double distance = 0;
    for (size_t axis = 0; axis < kTuningAxes; ++axis) {
      const double off = (at[axis] - cell[axis]) * (axis == kTuningAxes - 1 ? kAlignmentWeight : 1);
      distance += off * off;
    }
    if (distance < least) best = i, least = distance;
  }
  return best;
}

Status fill_entries(const ArchiveSpec &spec, Tables *tables) {
  if (spec.kernels.size() > kMaxEntries) return invalid("more kernels than the cap of 65536");
  for (const KernelSpec &kernel : spec.kernels) {
    FLYDSL_RETURN_IF_ERROR(check_kernel(spec, kernel));
    tables->kernels.push_back(&kernel);
  }
  std::sort(tables->kernels.begin(), tables->kernels.end(),
            [](const KernelSpec *a, const KernelSpec *b) { return a->name < b->name; });
  for (size_t i = 0; i < tables->kernels.size(); ++i) {
    const KernelSpec &kernel = *tables->kernels[i];
    if (i > 0 && tables->kernels[i - 1]->name == kernel.name) {
      return invalid("kernel '" + kernel.name + "' is listed twice");
    }
    Entry entry{};
    entry.name = tables->strings.add(kernel.name);
    entry.op = tables->strings.add(kernel.op);
    entry.backend = tables->strings.add(kernel.backend);
    entry.target_id = tables->strings.add(kernel.target_id);
    entry.symbol = tables->strings.add(kernel.symbol);
    entry.grid_rule = kernel.grid_rule;
    entry.kernarg_layout_id = kernel.kernarg_layout_id;
    entry.kernarg_bytes = kernel.kernarg_bytes;
    entry.wave_size = kernel.wave_size;
    std::copy_n(kernel.block, 3, entry.block);
    std::copy_n(kernel.tile, 3, entry.tile);
    entry.lds_static_bytes = kernel.lds_static_bytes;
    entry.lds_dynamic_bytes = kernel.lds_dynamic_bytes;
    entry.scratch_bytes = kernel.scratch_bytes;
    entry.vgpr_count = kernel.vgpr_count;
    entry.sgpr_count = kernel.sgpr_count;
    entry.functional_key = kernel.functional_key;
    entry.image_bytes = kernel.image.size();
    entry.image_checksum = checksum(kernel.image.data(), kernel.image.size());
    tables->entries.push_back(entry);
  }
  return {};
}

Status fill_candidates(const SelectionSpec &row, Tables *tables, Slot *slot) {
  if (row.candidates.empty() || row.candidates.size() > kMaxCandidatesPerSlot) {
    return invalid("selection of " + row.op + ": a key needs 1 to 64 candidates");
  }
  slot->functional_key = row.functional_key;
  slot->op = tables->strings.add(row.op);
  slot->first_candidate = static_cast<uint32_t>(tables->candidates.size());
  slot->candidate_count = static_cast<uint32_t>(row.candidates.size());
  for (const CandidateSpec &spec : row.candidates) {
    const auto at = std::lower_bound(
        tables->kernels.begin(), tables->kernels.end(), spec.kernel,
        [](const KernelSpec *a, const std::string &name) { return a->name < name; });
    if (at == tables->kernels.end() || (*at)->name != spec.kernel) {
      return invalid("selection of " + row.op + ": kernel '" + spec.kernel + "' does not exist");
    }
    FLYDSL_RETURN_IF_ERROR(check_candidate(row, **at, spec));
    Candidate candidate{};
    candidate.entry = static_cast<uint32_t>(at - tables->kernels.begin());
    candidate.align_bytes = spec.align_bytes;
    candidate.seq_q_min = spec.seq_q_min;
    candidate.seq_q_max = spec.seq_q_max;
    candidate.seq_k_min = spec.seq_k_min;
    candidate.seq_k_max = spec.seq_k_max;
    tables->candidates.push_back(candidate);
  }
  return {};
}

bool is_empty(const Slot &slot) {
  return slot.candidate_count == 0;
}
bool is_empty(const TuningSlot &slot) {
  return slot.row_count == 0;
}

// Places the slots in a table of `size`; false when a key would lie too far from its hash.
template <class AnySlot>
bool place_slots(const std::vector<AnySlot> &rows, const std::vector<uint64_t> &hashes, size_t size,
                 std::vector<AnySlot> *table) {
  table->assign(size, AnySlot{});
  for (size_t row = 0; row < rows.size(); ++row) {
    size_t at = hashes[row] & (size - 1);
    uint32_t probes = 1;
    while (!is_empty((*table)[at]) && probes < kMaxProbes) {
      at = (at + 1) & (size - 1);
      ++probes;
    }
    if (!is_empty((*table)[at])) return false;
    (*table)[at] = rows[row];
  }
  return true;
}

Status fill_selection(const ArchiveSpec &spec, Tables *tables) {
  std::vector<const SelectionSpec *> sorted;
  for (const SelectionSpec &row : spec.selection) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(), [](const SelectionSpec *a, const SelectionSpec *b) {
    return std::tie(a->op, a->functional_key) < std::tie(b->op, b->functional_key);
  });
  std::vector<Slot> rows;
  std::vector<uint64_t> hashes;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const SelectionSpec &row = *sorted[i];
    if (i > 0 && sorted[i - 1]->op == row.op &&
        sorted[i - 1]->functional_key == row.functional_key) {
      return invalid("selection of " + row.op + ": a functional key is listed twice");
    }
    Slot slot{};
    FLYDSL_RETURN_IF_ERROR(fill_candidates(row, tables, &slot));
    rows.push_back(slot);
    hashes.push_back(selection_hash(row.op, row.functional_key));
  }
  if (tables->candidates.size() > kMaxCandidates)
    return invalid("more candidates than the cap of 1048576");
  if (rows.empty()) return {};
  // At most half full: short probes, and at least one empty slot.
  size_t size = std::bit_ceil(rows.size() * 2);
  while (size <= kMaxSlots && !place_slots(rows, hashes, size, &tables->slots)) size *= 2;
  return size <= kMaxSlots ? Status()
                           : invalid("the selection table is above the cap of 1048576 slots");
}

struct TuningTables {
  std::vector<TuningSlot> slots;
  std::vector<TuningRow> rows;
  std::vector<uint8_t> cells;
};

Status fill_tuning_rows(const TuningSpec &spec, Tables *tables, TuningTables *tuning) {
  const std::string label = "tuning of " + spec.op + ": ";
  if (spec.rows.empty() || spec.rows.size() > kMaxTuningRowsPerSlot)
    return invalid(label + "a key needs 1 to 256 rows");
  for (const TuningRowSpec &row : spec.rows) {
    const auto names = [&](const Candidate &candidate) {
      const KernelSpec &kernel = *tables->kernels[candidate.entry];
      return kernel.name == row.kernel && kernel.op == spec.op;
    };
    const auto at = std::find_if(tables->candidates.begin(), tables->candidates.end(), names);
    if (at == tables->candidates.end() && !row.kernel.empty())
      return invalid(label + "kernel '" + row.kernel + "' is no candidate");
    if (!std::has_single_bit(row.align_bytes) || row.compute_units == 0)
      return invalid(label + "alignment is not a power of two, or there are no compute units");
    FLYDSL_RETURN_IF_ERROR(check_string("origin of a tuning row", row.origin));
    tuning->rows.push_back({row.kernel.empty()
                                ? kFirstThatFits
                                : static_cast<uint32_t>(at - tables->candidates.begin()),
                            tables->strings.add(row.origin), row.rows, row.keys, row.parallel,
                            row.align_bytes, row.compute_units, row.figure_ns});
  }
  return {};
}

// Fills the cells of a slot whose rows and box are known.
void fill_tuning_cells(std::span<const TuningRow> rows, const TuningSlot &slot,
                       std::vector<uint8_t> *cells) {
  TuningCoordinates at{};
  const auto fill = [&](const auto &self, size_t axis) -> void {
    if (axis == kTuningAxes) {
      cells->push_back(static_cast<uint8_t>(nearest_row(rows, at)));
      return;
    }
    for (uint32_t i = 0; i < slot.extent[axis]; ++i) {
      at[axis] = static_cast<uint8_t>(slot.first[axis] + i);
      self(self, axis + 1);
    }
  };
  fill(fill, 0);
}

Status fill_tuning(const ArchiveSpec &spec, Tables *tables, TuningTables *tuning) {
  std::vector<TuningSlot> slots;
  std::vector<uint64_t> hashes;
  for (const TuningSpec &key : spec.tuning) {
    for (const TuningSlot &before : slots) {
      if (before.key == key.key && before.op == tables->strings.add(key.op))
        return invalid("tuning of " + key.op + ": a key is listed twice");
    }
    TuningSlot slot{};
    slot.key = key.key;
    slot.op = tables->strings.add(key.op);
    slot.first_row = static_cast<uint32_t>(tuning->rows.size());
    slot.row_count = static_cast<uint32_t>(key.rows.size());
    slot.first_cell = static_cast<uint32_t>(tuning->cells.size());
    FLYDSL_RETURN_IF_ERROR(fill_tuning_rows(key, tables, tuning));
    const auto rows = std::span<const TuningRow>(tuning->rows).subspan(slot.first_row);
    for (size_t axis = 0; axis < kTuningAxes; ++axis) {
      uint8_t low = 255, high = 0;
      for (const TuningRow &row : rows) {
        const uint8_t at = tuning_coordinates(point_of(row), row.compute_units)[axis];
        low = std::min(low, at);
        high = std::max(high, at);
      }
      slot.first[axis] = low;
      slot.extent[axis] = static_cast<uint8_t>(high - low + 1);
    }
    fill_tuning_cells(rows, slot, &tuning->cells);
    if (tuning->cells.size() > kMaxTuningCells || tuning->rows.size() > kMaxTuningRows)
      return invalid("the tuning table is above its caps");
    slots.push_back(slot);
    hashes.push_back(selection_hash(key.op, key.key));
  }
  if (slots.empty()) return {};
  size_t size = std::bit_ceil(slots.size() * 2);
  while (size <= kMaxTuningSlots && !place_slots(slots, hashes, size, &tuning->slots)) size *= 2;
  return size <= kMaxTuningSlots ? Status() : invalid("the tuning table is above its caps");
}

void append(std::vector<unsigned char> *out, const void *data, size_t bytes) {
  const unsigned char *p = static_cast<const unsigned char *>(data);
  out->insert(out->end(), p, p + bytes);
  out->resize(padded8(out->size()));
}

// Header size is a multiple of 8, so padding within the index is padding within the file.
std::vector<unsigned char> assemble(const ArchiveSpec &spec, Tables *tables,
                                    const TuningTables &tuning, const Frames &frames) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format_version = kFormatVersion;
  header.header_bytes = sizeof(Header);
  header.abi_id = spec.abi_id;
  header.library_version = spec.library_version;
  header.flags = spec.executed ? 0 : kNeverExecuted;
  std::memcpy(header.arch, spec.arch.data(), spec.arch.size());
  header.entry_count = static_cast<uint32_t>(tables->entries.size());
  header.string_bytes = static_cast<uint32_t>(tables->strings.bytes().size());
  header.slot_count = static_cast<uint32_t>(tables->slots.size());
  header.candidate_count = static_cast<uint32_t>(tables->candidates.size());
  header.tuning_slot_count = static_cast<uint32_t>(tuning.slots.size());
  header.tuning_row_count = static_cast<uint32_t>(tuning.rows.size());
  header.tuning_cell_count = static_cast<uint32_t>(tuning.cells.size());
  header.dictionary_bytes = static_cast<uint32_t>(frames.dictionary.size());
  header.index_bytes = index_bytes(header);

  uint64_t offset = sizeof(Header) + header.index_bytes;
  std::vector<uint64_t> frame_offsets;
  for (const auto &frame : frames.frames) {
    frame_offsets.push_back(offset);
    offset += padded8(frame.size());
  }
  header.file_bytes = offset;
  for (size_t i = 0; i < tables->entries.size(); ++i) {
    const std::vector<unsigned char> &frame = frames.frames[frames.frame_of_image[i]];
    tables->entries[i].frame_offset = frame_offsets[frames.frame_of_image[i]];
    tables->entries[i].frame_bytes = frame.size();
    tables->entries[i].frame_checksum = checksum(frame.data(), frame.size());
  }

  std::vector<unsigned char> index;
  append(&index, tables->entries.data(), tables->entries.size() * sizeof(Entry));
  append(&index, tables->strings.bytes().data(), tables->strings.bytes().size());
  append(&index, tables->slots.data(), tables->slots.size() * sizeof(Slot));
  append(&index, tables->candidates.data(), tables->candidates.size() * sizeof(Candidate));
  append(&index, tuning.slots.data(), tuning.slots.size() * sizeof(TuningSlot));
  append(&index, tuning.rows.data(), tuning.rows.size() * sizeof(TuningRow));
  append(&index, tuning.cells.data(), tuning.cells.size());
  append(&index, frames.dictionary.data(), frames.dictionary.size());
  header.index_checksum = checksum(index.data(), index.size());
  header.header_checksum = checksum(&header, offsetof(Header, header_checksum));

  std::vector<unsigned char> file;
  file.reserve(offset);
  append(&file, &header, sizeof header);
  append(&file, index.data(), index.size());
  for (const auto &frame : frames.frames) append(&file, frame.data(), frame.size());
  return file;
}

}  // namespace

Status build(const ArchiveSpec &spec, std::vector<unsigned char> *file, WriteReport *report) {
  const std::optional<TargetId> arch = parse_target_id(spec.arch);
  if (!arch || arch->processor != spec.arch)
    return invalid("'" + spec.arch + "' is not an architecture such as gfx950");
  Tables tables;
  FLYDSL_RETURN_IF_ERROR(fill_entries(spec, &tables));
  FLYDSL_RETURN_IF_ERROR(fill_selection(spec, &tables));
  TuningTables tuning;
  FLYDSL_RETURN_IF_ERROR(fill_tuning(spec, &tables, &tuning));
  if (tables.strings.bytes().size() > kMaxStringBytes)
    return invalid("the strings are above the cap of 16 MiB");

  std::vector<const std::vector<unsigned char> *> images;
  for (const KernelSpec *kernel : tables.kernels) images.push_back(&kernel->image);
  Frames frames;
  FLYDSL_RETURN_IF_ERROR(compress_images(images, &frames));
  *file = assemble(spec, &tables, tuning, frames);
  *report = {};
  for (const auto *image : images) report->image_bytes += image->size();
  report->dictionary_bytes = frames.dictionary.size();
  report->file_bytes = file->size();
  return {};
}

}  // namespace flydsl::archive
