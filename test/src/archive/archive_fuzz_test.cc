// Property: whatever is done to an archive's bytes, opening and reading it either refuses with a
// status or gives exactly the code objects that were packed. Run it with sanitizers (preset
// `sanitize`) as well.
#include <random>

#include "src/archive/checksum.h"
#include "src/archive/reader.h"
#include "test/src/archive/archive_fixture.h"
#include "test/src/archive/memory_file.h"

namespace flydsl::test {
namespace {

using archive::Archive;
using archive::Header;
using Bytes = std::vector<unsigned char>;

constexpr uint64_t kSeed = 20250301;

// Opens, reads everything, checks every image that comes back. Returns whether the archive opened.
bool exercise(const std::string &path, const archive::ArchiveSpec &spec) {
  std::unique_ptr<Archive> opened;
  const Status status = Archive::open(path, kAbiId, &opened);
  if (!status.ok()) {
    EXPECT_FALSE(status.message().empty());
    EXPECT_TRUE(FLYDSL_AOT_STATUS_FAMILY(status.code()) == 3) << status.code();
    return false;
  }
  for (uint32_t i = 0; i < opened->entries().size(); ++i) {
    Bytes image;
    if (!opened->read(i, &image).ok()) continue;
    const bool packed =
        std::any_of(spec.kernels.begin(), spec.kernels.end(),
                    [&](const archive::KernelSpec &kernel) { return kernel.image == image; });
    EXPECT_TRUE(packed) << "a code object that was never packed was accepted";
  }
  for (const uint64_t key : {5, 9, 77}) {
    (void)opened->find("op", key);
    for (const uint64_t rows : {uint64_t{0}, uint64_t{100}, UINT64_MAX}) {
      const archive::TuningRow *row = opened->tuned("op", key, {rows, 100, UINT64_MAX, 16}, 256);
      EXPECT_TRUE(!row || row->candidate == archive::kFirstThatFits || row->candidate < opened->candidates().size());
    }
  }
  return true;
}

TEST(ArchiveFuzz, EveryTruncation) {
  const archive::ArchiveSpec spec = tuned_spec();
  const Bytes good = build_or_die(spec);
  MemoryFile file;
  ASSERT_TRUE(file.write(good));
  ASSERT_TRUE(exercise(file.path(), spec));
  for (size_t length = good.size(); length-- > 0;) {
    ASSERT_TRUE(file.truncate(length));
    EXPECT_FALSE(exercise(file.path(), spec))
        << "truncated to " << length << " of " << good.size() << " bytes";
  }
}

TEST(ArchiveFuzz, RandomBytes) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  const archive::ArchiveSpec spec = tuned_spec();
  const Bytes good = build_or_die(spec);
  MemoryFile file;
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes = good;
    const size_t flips = 1 + random() % 8;
    for (size_t i = 0; i < flips; ++i)
      bytes[random() % bytes.size()] ^= static_cast<unsigned char>(1 + random() % 255);
    ASSERT_TRUE(file.write(bytes));
    exercise(file.path(), spec);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// The same with checksums made right, so that the checks behind them meet the damage.
TEST(ArchiveFuzz, RandomIndexBytesWithRightChecksums) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed + 1));
  std::mt19937_64 random(kSeed + 1);
  const archive::ArchiveSpec spec = tuned_spec();
  const Bytes good = build_or_die(spec);
  Header header;
  std::memcpy(&header, good.data(), sizeof header);
  MemoryFile file;
  int opened = 0;
  for (int round = 0; round < 8000; ++round) {
    Bytes bytes = good;
    const size_t end = sizeof(Header) + header.index_bytes;
    const size_t flips = 1 + random() % 4;
    for (size_t i = 0; i < flips; ++i) {
      // Mostly small changes of whole words: they stay plausible for longer than random bytes.
      const size_t at = 12 + random() % (end - 16);
      if (random() % 2) {
        bytes[at] = static_cast<unsigned char>(bytes[at] + (random() % 2 ? 1 : -1));
      } else {
        bytes[at] = static_cast<unsigned char>(random());
      }
    }
    Header changed;
    std::memcpy(&changed, bytes.data(), sizeof changed);
    changed.index_checksum = archive::checksum(bytes.data() + sizeof(Header), end - sizeof(Header));
    changed.header_checksum = archive::checksum(&changed, offsetof(Header, header_checksum));
    std::memcpy(bytes.data(), &changed, sizeof changed);
    ASSERT_TRUE(file.write(bytes));
    opened += exercise(file.path(), spec);
    if (HasFailure()) FAIL() << "round " << round;
  }
  // Both outcomes must occur, else the test looks at nothing.
  EXPECT_GT(opened, 100);
  EXPECT_LT(opened, 7900);
}

}  // namespace
}  // namespace flydsl::test
