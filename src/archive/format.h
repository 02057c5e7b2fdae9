// Kernel archive format, version 1, as structs. The specification is docs/archive-format.md; names
// follow it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace flydsl::archive {

static_assert(std::endian::native == std::endian::little,
              "archives are little-endian and read by memcpy");

constexpr char kMagic[8] = {'F', 'L', 'Y', 'D', 'S', 'L', 'F', 'A'};
constexpr uint32_t kFormatVersion = 1;

constexpr uint32_t kMaxEntries = 65536;
constexpr uint32_t kMaxStringBytes = 16u << 20;
constexpr uint32_t kMaxSlots = 1u << 20;
constexpr uint32_t kMaxCandidates = 1u << 20;
constexpr uint32_t kMaxCandidatesPerSlot = 64;
constexpr uint32_t kMaxTuningSlots = 1u << 16;
constexpr uint32_t kMaxTuningRows = 1u << 20;
constexpr uint32_t kMaxTuningRowsPerSlot = 256;  // a cell is a byte
constexpr uint32_t kMaxTuningCells = 1u << 22;
constexpr size_t kTuningAxes = 4;  // rows, keys, parallel work, alignment
constexpr uint32_t kMaxDictionaryBytes = 1u << 20;
constexpr uint64_t kMaxFrameBytes = 64u << 20;
constexpr uint64_t kMaxImageBytes = 64u << 20;

constexpr size_t kMaxStringLength = 255;  // bytes before the NUL
constexpr uint32_t kMaxProbes = 256;      // slots looked at for one key

constexpr uint32_t kGridRuleLinearTiles = 1;
constexpr uint32_t kGridRulePersistent = 2;
constexpr bool known_grid_rule(uint32_t rule) {
  return rule == kGridRuleLinearTiles || rule == kGridRulePersistent;
}

// Header.flags: the kernels were compiled, never executed.
constexpr uint32_t kNeverExecuted = 1;

struct Header {
  char magic[8];
  uint32_t format_version;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint64_t abi_id;
  uint32_t library_version;
  uint32_t flags;
  char arch[24];
  uint32_t entry_count;
  uint32_t string_bytes;
  uint32_t slot_count;
  uint32_t candidate_count;
  uint32_t dictionary_bytes;
  uint32_t reserved0;
  uint64_t index_bytes;
  uint64_t index_checksum;
  uint32_t tuning_slot_count;
  uint32_t tuning_row_count;
  uint32_t tuning_cell_count;
  uint32_t reserved1;
  uint64_t header_checksum;
};
static_assert(sizeof(Header) == 128 && offsetof(Header, arch) == 40 &&
              offsetof(Header, entry_count) == 64 && offsetof(Header, index_bytes) == 88 &&
              offsetof(Header, header_checksum) == 120);

struct Entry {
  uint32_t name;
  uint32_t op;
  uint32_t backend;
  uint32_t target_id;
  uint32_t symbol;
  uint32_t grid_rule;
  uint64_t kernarg_layout_id;
  uint32_t kernarg_bytes;
  uint32_t wave_size;
  uint32_t block[3];
  uint32_t tile[3];
  uint32_t lds_static_bytes;
  uint32_t lds_dynamic_bytes;
  uint32_t scratch_bytes;
  uint32_t vgpr_count;
  uint32_t sgpr_count;
  uint32_t reserved0;
  uint64_t functional_key;
  uint64_t frame_offset;
  uint64_t frame_bytes;
  uint64_t image_bytes;
  uint64_t frame_checksum;
  uint64_t image_checksum;
  uint8_t reserved1[24];
};
static_assert(sizeof(Entry) == 160 && offsetof(Entry, kernarg_layout_id) == 24 &&
              offsetof(Entry, block) == 40 && offsetof(Entry, lds_static_bytes) == 64 &&
              offsetof(Entry, functional_key) == 88 && offsetof(Entry, image_checksum) == 128);

struct Slot {
  uint64_t functional_key;
  uint32_t op;
  uint32_t first_candidate;
  uint32_t candidate_count;  // 0: empty slot
  uint32_t reserved[3];
};
static_assert(sizeof(Slot) == 32 && offsetof(Slot, candidate_count) == 16);

struct Candidate {
  uint32_t entry;
  uint32_t align_bytes;
  uint64_t seq_q_min;
  uint64_t seq_q_max;
  uint64_t seq_k_min;
  uint64_t seq_k_max;
  uint64_t reserved;
};
static_assert(sizeof(Candidate) == 48 && offsetof(Candidate, seq_q_min) == 8);

// The tuned problems of one key: a box of cells, each with the row that decides there.
struct TuningSlot {
  uint64_t key;
  uint32_t op;
  uint32_t first_row;
  uint32_t row_count;  // 0: empty slot
  uint32_t first_cell;
  uint8_t first[kTuningAxes];   // the box's lowest coordinate on each axis
  uint8_t extent[kTuningAxes];  // how many coordinates it has there
};
static_assert(sizeof(TuningSlot) == 32 && offsetof(TuningSlot, first) == 24);

// Of a row: its problem's first candidate that fits is the fastest.
constexpr uint32_t kFirstThatFits = ~uint32_t{0};

struct TuningRow {
  uint32_t candidate;  // or kFirstThatFits
  uint32_t origin;
  uint64_t rows;
  uint64_t keys;
  uint64_t parallel;
  uint32_t align_bytes;
  uint32_t compute_units;
  uint64_t figure_ns;
};
static_assert(sizeof(TuningRow) == 48 && offsetof(TuningRow, figure_ns) == 40);

constexpr uint64_t padded8(uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

// Size of the index as its counts give it. The counts are capped, so this cannot overflow.
constexpr uint64_t index_bytes(const Header &header) {
  return uint64_t{header.entry_count} * sizeof(Entry) + padded8(header.string_bytes) +
         uint64_t{header.slot_count} * sizeof(Slot) +
         uint64_t{header.candidate_count} * sizeof(Candidate) +
         uint64_t{header.tuning_slot_count} * sizeof(TuningSlot) +
         uint64_t{header.tuning_row_count} * sizeof(TuningRow) + padded8(header.tuning_cell_count) +
         padded8(header.dictionary_bytes);
}

}  // namespace flydsl::archive
