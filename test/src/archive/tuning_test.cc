// The tuning table: coordinates, the nearest-row rule, and each way in which it is refused.
#include <cmath>
#include <functional>
#include <random>

#include "src/archive/checksum.h"
#include "src/archive/reader.h"
#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {
namespace {

using archive::Archive;
using archive::Header;
using archive::TuningPoint;
using archive::TuningRow;
using archive::TuningSlot;

class Tuning : public ::testing::Test {
 protected:
  void open(const archive::ArchiveSpec &spec) {
    write_bytes(folder_.file("a.fda"), build_or_die(spec));
    const Status status = Archive::open(folder_.file("a.fda"), kAbiId, &archive_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // Number of the row that decides, -1 for none.
  long decides(uint64_t key, const TuningPoint &point, uint32_t compute_units = 256) {
    const TuningRow *row = archive_->tuned("op", key, point, compute_units);
    return row ? row - archive_->tuning_rows().data() : -1;
  }
  TempFolder folder_;
  std::unique_ptr<Archive> archive_;
};

TEST_F(Tuning, HalfOctaves) {
  EXPECT_EQ(archive::half_octaves(0), 0);
  for (uint64_t n = 1; n < 100000; ++n) {
    const double exact = 2 * std::log2(static_cast<double>(n));
    // Nine bits decide: numbers within 1/256 of a threshold may fall to either side.
    ASSERT_NEAR(archive::half_octaves(n), exact, 0.5 + 2 * std::log2(1 + 1 / 256.0)) << n;
    ASSERT_GE(archive::half_octaves(n + 1), archive::half_octaves(n));
  }
  EXPECT_EQ(archive::half_octaves(uint64_t{1} << 40), 80);
  EXPECT_EQ(archive::half_octaves(UINT64_MAX), 128);
}

TEST_F(Tuning, TheNearestRowDecides) {
  open(tuned_spec());
  EXPECT_EQ(decides(5, {64, 100, 8, 16}), 0);
  EXPECT_EQ(decides(5, {1000, 100, 8, 16}), 1);
  EXPECT_EQ(decides(5, {1000, 100, 64, 16}), 2);
  EXPECT_EQ(decides(5, {128, 100, 8, 16}), 0);
  EXPECT_EQ(decides(5, {500, 100, 8, 16}), 1);
  // Outside the box, at its edge.
  EXPECT_EQ(decides(5, {0, 0, 0, 1}), 0);
  EXPECT_EQ(decides(5, {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}), 2);
  EXPECT_EQ(decides(5, {1000, 7, 1000, 256}), 2);
  // A quarter of the compute units has four times the work each.
  EXPECT_EQ(decides(5, {1000, 100, 16, 16}, 64), 2);
  EXPECT_EQ(decides(5, {1000, 100, 16, 16}, 512), 1);
  EXPECT_EQ(decides(9, {1, 1, 1, 1}), 3);
  EXPECT_EQ(decides(6, {64, 100, 8, 16}), -1);
  EXPECT_EQ(archive_->tuned("other", 5, {64, 100, 8, 16}, 256), nullptr);
  open(small_spec());
  EXPECT_EQ(decides(5, {64, 100, 8, 16}), -1);
}

// Each cell against the rule's words, on random rows.
TEST_F(Tuning, EveryCellHoldsTheNearestRow) {
  std::mt19937_64 random(20261130);
  archive::ArchiveSpec spec = small_spec();
  archive::TuningSpec tuning{"op", 5, {}};
  const auto any = [&](int octaves) {
    return std::mt19937_64::result_type{1} + random() % (uint64_t{1} << (1 + random() % octaves));
  };
  for (int i = 0; i < 20; ++i)
    tuning.rows.push_back({"a", any(14), any(14), any(8), 1u << random() % 5, 256, 1, "model:x"});
  spec.tuning = {tuning};
  open(spec);
  const auto place = [](uint64_t n) { return 2 * std::log2(static_cast<double>(n)); };
  for (int i = 0; i < 2000; ++i) {
    const TuningPoint point = {any(14), any(14), any(8), uint64_t{1} << random() % 5};
    const auto cell = archive::tuning_coordinates(point, 256);
    double least = INFINITY;
    long nearest = -1;
    bool inside = true;
    for (size_t axis = 0; axis < archive::kTuningAxes; ++axis) {
      uint8_t low = 255, high = 0;
      for (const auto &row : tuning.rows) {
        const auto at = archive::tuning_coordinates(
            {row.rows, row.keys, row.parallel, row.align_bytes}, 256)[axis];
        low = std::min(low, at), high = std::max(high, at);
      }
      inside &= cell[axis] >= low && cell[axis] <= high;
    }
    if (!inside) continue;
    for (size_t r = 0; r < tuning.rows.size(); ++r) {
      const auto &row = tuning.rows[r];
      const double off[] = {place(row.rows) - cell[0], place(row.keys) - cell[1],
                            place(row.parallel) - cell[2], 4 * (place(row.align_bytes) - cell[3])};
      double distance = 0;
      for (const double d : off) distance += d * d;
      if (distance < least) least = distance, nearest = static_cast<long>(r);
    }
    ASSERT_EQ(decides(5, point), nearest);
  }
}

// ---- refusals

struct Editor {
  std::vector<unsigned char> bytes;
  Header header;

  explicit Editor(std::vector<unsigned char> file) : bytes(std::move(file)) {
    std::memcpy(&header, bytes.data(), sizeof header);
  }
  size_t slots_at() const {
    return sizeof(Header) + header.entry_count * sizeof(archive::Entry) +
           archive::padded8(header.string_bytes) + header.slot_count * sizeof(archive::Slot) +
           header.candidate_count * sizeof(archive::Candidate);
  }
  TuningSlot *slots() { return reinterpret_cast<TuningSlot *>(bytes.data() + slots_at()); }
  TuningRow *rows() { return reinterpret_cast<TuningRow *>(slots() + header.tuning_slot_count); }
  uint8_t *cells() { return reinterpret_cast<uint8_t *>(rows() + header.tuning_row_count); }
  TuningSlot *slot(bool used) {
    for (size_t i = 0;; ++i)
      if ((slots()[i].row_count != 0) == used) return &slots()[i];
  }
  std::vector<unsigned char> sealed() {
    header.index_checksum = archive::checksum(bytes.data() + sizeof(Header), header.index_bytes);
    header.header_checksum = archive::checksum(&header, offsetof(Header, header_checksum));
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
};

struct Refusal {
  const char *message;
  std::function<void(Editor &)> edit;
};

const Refusal kRefusals[] = {
    {"not a power of two", [](Editor &e) { e.header.tuning_slot_count = 3; }},
    {"above its cap", [](Editor &e) { e.header.tuning_slot_count = UINT32_MAX; }},
    {"above its cap", [](Editor &e) { e.header.tuning_row_count = UINT32_MAX; }},
    {"above its cap", [](Editor &e) { e.header.tuning_cell_count = UINT32_MAX; }},
    {"index size", [](Editor &e) { e.header.tuning_row_count += 1; }},
    {"no empty slot",
     [](Editor &e) {
       for (uint32_t i = 0; i < e.header.tuning_slot_count; ++i)
         if (e.slots()[i].row_count == 0) e.slots()[i] = *e.slot(true);
     }},
    {"empty but not zero", [](Editor &e) { e.slot(false)->key = 1; }},
    {"candidate 3 does not exist", [](Editor &e) { e.rows()[1].candidate = 3; }},
    {"its origin is no string", [](Editor &e) { e.rows()[0].origin = UINT32_MAX; }},
    {"alignment 12", [](Editor &e) { e.rows()[0].align_bytes = 12; }},
    {"0 compute units", [](Editor &e) { e.rows()[0].compute_units = 0; }},
    {"its operator is no string", [](Editor &e) { e.slot(true)->op = UINT32_MAX; }},
    {"outside the table", [](Editor &e) { e.slot(true)->first_row = UINT32_MAX; }},
    {"outside the table", [](Editor &e) { e.slot(true)->row_count = 5; }},
    {"outside the table", [](Editor &e) { e.slot(true)->row_count = 257; }},
    {"cells are outside", [](Editor &e) { e.slot(true)->first_cell = UINT32_MAX; }},
    {"cells are outside", [](Editor &e) { e.slot(true)->extent[0] = 0; }},
    {"cells are outside", [](Editor &e) { e.slot(true)->extent[0] = 200; }},
    {"beyond the coordinates",
     [](Editor &e) { e.slot(true)->first[2] = 255, e.slot(true)->extent[2] = 2; }},
    {"a cell names row", [](Editor &e) { e.cells()[e.slot(true)->first_cell] = 3; }},
    {"not reachable", [](Editor &e) { e.slot(true)->key ^= 1; }},
    {"another operator",
     [](Editor &e) {
       // "native", which is a string of the archive.
       e.slot(true)->op =
           reinterpret_cast<archive::Entry *>(e.bytes.data() + sizeof(Header))->backend;
     }},
};

TEST_F(Tuning, EachDamageHasItsMessage) {
  const auto good = build_or_die(tuned_spec());
  for (const Refusal &refusal : kRefusals) {
    Editor editor(good);
    refusal.edit(editor);
    write_bytes(folder_.file("a.fda"), editor.sealed());
    const Status status = Archive::open(folder_.file("a.fda"), kAbiId, &archive_);
    EXPECT_EQ(status.code(), FLYDSL_AOT_ARCHIVE_CORRUPT) << refusal.message;
    EXPECT_NE(status.message().find(refusal.message), std::string::npos)
        << refusal.message << " | " << status.message();
  }
}

}  // namespace
}  // namespace flydsl::test
