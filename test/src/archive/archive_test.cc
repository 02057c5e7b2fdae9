// Archives: what the writer wrote comes back, and each way of being wrong is refused with its own
// status.
#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "src/archive/checksum.h"
#include "src/archive/reader.h"
#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {
namespace {

using archive::Archive;
using archive::Candidate;
using archive::Entry;
using archive::Header;
using archive::Slot;
using Bytes = std::vector<unsigned char>;

Status open_bytes(const Bytes &bytes, std::unique_ptr<Archive> *archive, const TempFolder &folder,
                  uint64_t abi_id = kAbiId) {
  const std::string path = folder.file("a.fda");
  write_bytes(path, bytes);
  return Archive::open(path, abi_id, archive);
}

TEST(Archive, RoundTrip) {
  const archive::ArchiveSpec spec = small_spec();
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  const Status status = open_bytes(build_or_die(spec), &opened, folder);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_STREQ(opened->arch(), "gfx950");
  EXPECT_EQ(opened->library_version(), 100u);
  ASSERT_EQ(opened->entries().size(), 3u);
  const char *names[] = {"a", "b", "c"};
  for (uint32_t i = 0; i < 3; ++i) {
    const Entry &entry = opened->entries()[i];
    EXPECT_STREQ(opened->string(entry.name), names[i]);
    EXPECT_EQ(std::string(opened->string(entry.symbol)), std::string(names[i]) + "_symbol");
    EXPECT_STREQ(opened->string(entry.op), "op");
    EXPECT_STREQ(opened->string(entry.backend), "native");
    EXPECT_STREQ(opened->string(entry.target_id), "gfx950");
    EXPECT_EQ(entry.kernarg_layout_id, 77u);
    EXPECT_EQ(entry.kernarg_bytes, 16u);
    EXPECT_EQ(entry.block[0], 256u);
    EXPECT_EQ(entry.tile[1], 64u);
    EXPECT_EQ(entry.lds_static_bytes, 4096u);
    EXPECT_EQ(entry.vgpr_count, 100u);
    EXPECT_EQ(entry.sgpr_count, 50u);
    Bytes image;
    const Status read = opened->read(i, &image);
    ASSERT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(image, fake_image(i + 1));
  }
  const auto candidates = opened->find("op", 5);
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].entry, 1u);
  EXPECT_EQ(candidates[0].align_bytes, 16u);
  EXPECT_EQ(candidates[1].entry, 0u);
  EXPECT_EQ(opened->find("op", 9).size(), 1u);
  EXPECT_TRUE(opened->find("op", 6).empty());
  EXPECT_TRUE(opened->find("other", 5).empty());
  EXPECT_EQ(opened->read(3, nullptr).code(), FLYDSL_AOT_INVALID_ARGUMENT);
}

TEST(Archive, SameInputSameBytesInAnyOrder) {
  archive::ArchiveSpec spec = small_spec();
  const Bytes first = build_or_die(spec);
  std::swap(spec.kernels[0], spec.kernels[2]);
  std::swap(spec.selection[0], spec.selection[1]);
  EXPECT_EQ(build_or_die(spec), first);
}

TEST(Archive, EqualImagesShareAFrame) {
  archive::ArchiveSpec spec = small_spec();
  spec.kernels[1].image = spec.kernels[0].image;
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  ASSERT_TRUE(open_bytes(build_or_die(spec), &opened, folder).ok());
  EXPECT_EQ(opened->entries()[0].frame_offset, opened->entries()[2].frame_offset);
  EXPECT_NE(opened->entries()[0].frame_offset, opened->entries()[1].frame_offset);
}

TEST(Archive, ManyKernelsWithADictionary) {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = kAbiId;
  // Images that share most of an incompressible body: only a shared dictionary can shrink them.
  Bytes body(6000);
  uint32_t x = 12345;
  for (auto &byte : body) byte = static_cast<unsigned char>((x = x * 1664525u + 1013904223u) >> 24);
  for (unsigned i = 0; i < 300; ++i) {
    const std::string name = "kernel" + std::to_string(i);
    spec.kernels.push_back(fake_kernel(name, i, i));
    spec.kernels.back().image = body;
    for (int j = 0; j < 40; ++j)
      spec.kernels.back().image[(i * 977 + j * 131) % 6000] = static_cast<unsigned char>(i + j);
    spec.selection.push_back({"op", i, {{name, 2, 0, 10, 0, 10}}});
  }
  const Bytes file = build_or_die(spec);
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  EXPECT_GT(header.dictionary_bytes, 0u);
  EXPECT_LT(file.size(), 300u * 6000 / 4);
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  const Status status = open_bytes(file, &opened, folder);
  ASSERT_TRUE(status.ok()) << status.message();
  for (const auto &kernel : spec.kernels) {
    const auto found = opened->find("op", kernel.functional_key);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(opened->string(opened->entries()[found[0].entry].name), kernel.name);
    Bytes image;
    ASSERT_TRUE(opened->read(found[0].entry, &image).ok());
    EXPECT_EQ(image, kernel.image);
  }
}

TEST(Archive, EmptyArchive) {
  archive::ArchiveSpec spec;
  spec.arch = "gfx942";
  spec.abi_id = kAbiId;
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  ASSERT_TRUE(open_bytes(build_or_die(spec), &opened, folder).ok());
  EXPECT_TRUE(opened->entries().empty());
  EXPECT_TRUE(opened->find("op", 0).empty());
}

// ---- refusals

// Changes an archive's bytes and makes the checksums right again, so that what is tested is the
// check behind them.
struct Editor {
  Bytes bytes;
  Header header;

  explicit Editor(Bytes file) : bytes(std::move(file)) {
    std::memcpy(&header, bytes.data(), sizeof header);
  }

  template <typename T>
  T *at(size_t offset) {
    return reinterpret_cast<T *>(bytes.data() + offset);
  }
  Entry *entry(size_t i) { return at<Entry>(sizeof(Header) + i * sizeof(Entry)); }
  char *strings() { return at<char>(sizeof(Header) + header.entry_count * sizeof(Entry)); }
  size_t slots_offset() const {
    return sizeof(Header) + header.entry_count * sizeof(Entry) +
           archive::padded8(header.string_bytes);
  }
  Slot *slot(size_t i) { return at<Slot>(slots_offset() + i * sizeof(Slot)); }
  Slot *used_slot() {
    for (size_t i = 0;; ++i) {
      if (slot(i)->candidate_count != 0) return slot(i);
    }
  }
  Slot *empty_slot() {
    for (size_t i = 0;; ++i) {
      if (slot(i)->candidate_count == 0) return slot(i);
    }
  }
  Candidate *candidate(size_t i) {
    return at<Candidate>(slots_offset() + header.slot_count * sizeof(Slot) + i * sizeof(Candidate));
  }
  Bytes sealed() {
    const size_t end = std::min<size_t>(bytes.size(), sizeof(Header) + header.index_bytes);
    header.index_checksum = archive::checksum(bytes.data() + sizeof(Header), end - sizeof(Header));
    header.header_checksum = archive::checksum(&header, offsetof(Header, header_checksum));
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
};

struct Refusal {
  const char *name;
  flydsl_aot_status status;
  const char *message;  // must be part of it
  std::function<void(Editor &)> edit;
};

const Refusal kRefusals[] = {
    {"abi", FLYDSL_AOT_ARCHIVE_MISMATCH, "ABI id", [](Editor &e) { e.header.abi_id ^= 1; }},
    {"flags", FLYDSL_AOT_ARCHIVE_CORRUPT, "reserved", [](Editor &e) { e.header.flags = 2; }},
    {"header_bytes", FLYDSL_AOT_ARCHIVE_CORRUPT, "header size",
     [](Editor &e) { e.header.header_bytes = 64; }},
    {"header_reserved", FLYDSL_AOT_ARCHIVE_CORRUPT, "reserved",
     [](Editor &e) { e.header.reserved1 = 1; }},
    {"file_bytes", FLYDSL_AOT_ARCHIVE_CORRUPT, "the file has",
     [](Editor &e) { e.header.file_bytes += 8; }},
    {"arch_empty", FLYDSL_AOT_ARCHIVE_CORRUPT, "architecture",
     [](Editor &e) { std::memset(e.header.arch, 0, 24); }},
    {"arch_full", FLYDSL_AOT_ARCHIVE_CORRUPT, "architecture",
     [](Editor &e) { std::memset(e.header.arch, 'g', 24); }},
    {"arch_tail", FLYDSL_AOT_ARCHIVE_CORRUPT, "architecture",
     [](Editor &e) { e.header.arch[20] = 'x'; }},
    {"arch_path", FLYDSL_AOT_ARCHIVE_CORRUPT, "processor",
     [](Editor &e) { e.header.arch[3] = '/'; }},
    {"arch_other", FLYDSL_AOT_ARCHIVE_CORRUPT, "target id",
     [](Editor &e) { e.header.arch[5] = '1'; }},
    {"entry_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.header.entry_count = 65537; }},
    {"entry_count_huge", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.header.entry_count = UINT32_MAX; }},
    {"string_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.header.string_bytes = (16u << 20) + 1; }},
    {"slot_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.header.slot_count = 1u << 21; }},
    {"candidate_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.header.candidate_count = (1u << 20) + 1; }},
    {"dictionary_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.header.dictionary_bytes = (1u << 20) + 1; }},
    {"slots_not_power", FLYDSL_AOT_ARCHIVE_CORRUPT, "power of two",
     [](Editor &e) { e.header.slot_count = 3; }},
    {"index_bytes", FLYDSL_AOT_ARCHIVE_CORRUPT, "index size",
     [](Editor &e) { e.header.index_bytes += 8; }},
    {"index_beyond_file", FLYDSL_AOT_ARCHIVE_CORRUPT, "index size",
     [](Editor &e) {
       e.header.entry_count = 60000;
       e.header.index_bytes += 160ull * (60000 - 3);
     }},
    {"string_not_terminated", FLYDSL_AOT_ARCHIVE_CORRUPT, "string",
     [](Editor &e) { e.strings()[e.header.string_bytes - 1] = 'x'; }},
    {"string_not_ascii", FLYDSL_AOT_ARCHIVE_CORRUPT, "printable",
     [](Editor &e) { e.strings()[e.entry(0)->name] = '\x1b'; }},
    {"string_offset", FLYDSL_AOT_ARCHIVE_CORRUPT, "string at",
     [](Editor &e) { e.entry(1)->symbol = e.header.string_bytes; }},
    {"string_offset_huge", FLYDSL_AOT_ARCHIVE_CORRUPT, "string at",
     [](Editor &e) { e.entry(0)->name = UINT32_MAX; }},
    {"names_unsorted", FLYDSL_AOT_ARCHIVE_CORRUPT, "sorted",
     [](Editor &e) { std::swap(e.entry(0)->name, e.entry(1)->name); }},
    {"names_equal", FLYDSL_AOT_ARCHIVE_CORRUPT, "sorted",
     [](Editor &e) { e.entry(1)->name = e.entry(0)->name; }},
    {"grid_rule", FLYDSL_AOT_ARCHIVE_CORRUPT, "grid rule",
     [](Editor &e) { e.entry(2)->grid_rule = 3; }},
    {"block_zero", FLYDSL_AOT_ARCHIVE_CORRUPT, "work-group",
     [](Editor &e) { e.entry(2)->block[1] = 0; }},
    {"block_huge", FLYDSL_AOT_ARCHIVE_CORRUPT, "work-group",
     [](Editor &e) {
       e.entry(2)->block[0] = e.entry(2)->block[1] = e.entry(2)->block[2] = 1u << 31;
     }},
    {"tile_zero", FLYDSL_AOT_ARCHIVE_CORRUPT, "tile", [](Editor &e) { e.entry(2)->tile[0] = 0; }},
    {"wave_size", FLYDSL_AOT_ARCHIVE_CORRUPT, "wave size",
     [](Editor &e) { e.entry(2)->wave_size = 63; }},
    {"entry_reserved", FLYDSL_AOT_ARCHIVE_CORRUPT, "reserved",
     [](Editor &e) { e.entry(0)->reserved1[23] = 1; }},
    {"target_id", FLYDSL_AOT_ARCHIVE_CORRUPT, "target id",
     [](Editor &e) { e.entry(0)->target_id = e.entry(0)->op; }},
    {"frame_empty", FLYDSL_AOT_ARCHIVE_CORRUPT, "size of the code object",
     [](Editor &e) { e.entry(0)->frame_bytes = 0; }},
    {"frame_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.entry(0)->frame_bytes = (64u << 20) + 1; }},
    {"image_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "cap",
     [](Editor &e) { e.entry(0)->image_bytes = UINT64_MAX; }},
    {"frame_outside", FLYDSL_AOT_ARCHIVE_CORRUPT, "outside",
     [](Editor &e) { e.entry(0)->frame_offset = e.header.file_bytes - 4; }},
    {"frame_offset_overflow", FLYDSL_AOT_ARCHIVE_CORRUPT, "outside",
     [](Editor &e) { e.entry(0)->frame_offset = UINT64_MAX - 2; }},
    {"frame_in_index", FLYDSL_AOT_ARCHIVE_CORRUPT, "outside",
     [](Editor &e) { e.entry(0)->frame_offset = 128; }},
    {"frame_overlap", FLYDSL_AOT_ARCHIVE_CORRUPT, "'a' and 'b' overlap",
     [](Editor &e) {
       e.entry(1)->frame_offset = e.entry(0)->frame_offset + e.entry(0)->frame_bytes - 1;
       e.entry(1)->frame_bytes = 1;
     }},
    {"frame_shared_other_image", FLYDSL_AOT_ARCHIVE_CORRUPT, "overlap",
     [](Editor &e) {
       e.entry(1)->frame_offset = e.entry(0)->frame_offset;
       e.entry(1)->frame_bytes = e.entry(0)->frame_bytes;
     }},
    {"padding", FLYDSL_AOT_ARCHIVE_CORRUPT, "padding",
     [](Editor &e) {
       ASSERT_NE(e.header.string_bytes % 8, 0u);
       e.strings()[e.header.string_bytes] = 1;
     }},
    {"candidate_entry", FLYDSL_AOT_ARCHIVE_CORRUPT, "does not exist",
     [](Editor &e) { e.candidate(1)->entry = 3; }},
    {"candidate_align", FLYDSL_AOT_ARCHIVE_CORRUPT, "power of two",
     [](Editor &e) { e.candidate(1)->align_bytes = 0; }},
    {"candidate_reserved", FLYDSL_AOT_ARCHIVE_CORRUPT, "reserved",
     [](Editor &e) { e.candidate(0)->reserved = 1; }},
    {"slot_op", FLYDSL_AOT_ARCHIVE_CORRUPT, "operator name",
     [](Editor &e) { e.used_slot()->op = UINT32_MAX; }},
    {"slot_reserved", FLYDSL_AOT_ARCHIVE_CORRUPT, "reserved",
     [](Editor &e) { e.used_slot()->reserved[1] = 1; }},
    {"slot_empty_dirty", FLYDSL_AOT_ARCHIVE_CORRUPT, "not zero",
     [](Editor &e) { e.empty_slot()->functional_key = 1; }},
    {"slot_first", FLYDSL_AOT_ARCHIVE_CORRUPT, "outside",
     [](Editor &e) { e.used_slot()->first_candidate = UINT32_MAX; }},
    {"slot_count", FLYDSL_AOT_ARCHIVE_CORRUPT, "outside",
     [](Editor &e) { e.used_slot()->candidate_count = 4; }},
    {"slot_count_cap", FLYDSL_AOT_ARCHIVE_CORRUPT, "outside",
     [](Editor &e) { e.used_slot()->candidate_count = 65; }},
    {"slot_key", FLYDSL_AOT_ARCHIVE_CORRUPT, "another operator or key",
     [](Editor &e) { e.used_slot()->functional_key ^= 1; }},
    {"slot_moved", FLYDSL_AOT_ARCHIVE_CORRUPT, "not reachable",
     [](Editor &e) {
       // Into the slot just before its hash: probing forwards does not meet it.
       Slot *used = e.used_slot();
       const Slot copy = *used;
       *used = {};
       const uint32_t mask = e.header.slot_count - 1;
       const uint32_t home =
           static_cast<uint32_t>(archive::selection_hash("op", copy.functional_key)) & mask;
       for (uint32_t i = 1; i <= mask; ++i) {
         if (Slot *to = e.slot((home - i) & mask);
             to->candidate_count == 0 && ((home - i) & mask) != home) {
           *to = copy;
           return;
         }
       }
     }},
    {"slot_twice", FLYDSL_AOT_ARCHIVE_CORRUPT, "listed twice",
     [](Editor &e) { *e.empty_slot() = *e.used_slot(); }},
    {"slots_full", FLYDSL_AOT_ARCHIVE_CORRUPT, "no empty slot",
     [](Editor &e) {
       for (uint32_t i = 0; i < e.header.slot_count; ++i) {
         if (e.slot(i)->candidate_count == 0) *e.slot(i) = *e.used_slot();
       }
     }},
};

TEST(ArchiveRefusal, EachDamageHasItsMessage) {
  const Bytes good = build_or_die(small_spec());
  TempFolder folder;
  for (const Refusal &refusal : kRefusals) {
    Editor editor(good);
    refusal.edit(editor);
    std::unique_ptr<Archive> opened;
    const Status status = open_bytes(editor.sealed(), &opened, folder);
    EXPECT_EQ(status.code(), refusal.status) << refusal.name << ": " << status.message();
    EXPECT_NE(status.message().find(refusal.message), std::string::npos)
        << refusal.name << ": " << status.message();
    EXPECT_NE(status.message().find(folder.file("a.fda")), std::string::npos) << status.message();
    EXPECT_EQ(opened, nullptr);
  }
}

TEST(ArchiveRefusal, MagicVersionChecksums) {
  const Bytes good = build_or_die(small_spec());
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  Bytes bytes = good;
  bytes[0] = 'X';
  EXPECT_EQ(open_bytes(bytes, &opened, folder).code(), FLYDSL_AOT_ARCHIVE_CORRUPT);
  bytes = good;
  bytes[8] = 2;  // the version is looked at before the checksum
  EXPECT_EQ(open_bytes(bytes, &opened, folder).code(), FLYDSL_AOT_ARCHIVE_VERSION);
  bytes = good;
  bytes[33] ^= 1;
  EXPECT_NE(open_bytes(bytes, &opened, folder).message().find("header checksum"),
            std::string::npos);
  bytes = good;
  bytes[140] ^= 1;
  EXPECT_NE(open_bytes(bytes, &opened, folder).message().find("index checksum"), std::string::npos);
  EXPECT_EQ(open_bytes(good, &opened, folder, kAbiId + 1).code(), FLYDSL_AOT_ARCHIVE_MISMATCH);
}

TEST(ArchiveRefusal, CodeObjects) {
  const Bytes good = build_or_die(small_spec());
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  Bytes image;
  Editor editor(good);
  const uint64_t offset = editor.entry(0)->frame_offset;

  Bytes bytes = good;
  bytes[offset + 5] ^= 1;
  ASSERT_TRUE(open_bytes(bytes, &opened, folder).ok());
  EXPECT_NE(opened->read(0, &image).message().find("compressed code object"), std::string::npos);
  EXPECT_TRUE(opened->read(1, &image).ok());  // its neighbour is unharmed

  // Right checksums, but the frame inflates to something else than the index promises.
  Editor size(good);
  size.entry(0)->image_bytes += 1;
  ASSERT_TRUE(open_bytes(size.sealed(), &opened, folder).ok());
  EXPECT_NE(opened->read(0, &image).message().find("content size"), std::string::npos);
  Editor content(good);
  content.entry(0)->image_checksum ^= 1;
  ASSERT_TRUE(open_bytes(content.sealed(), &opened, folder).ok());
  EXPECT_NE(opened->read(0, &image).message().find("checksum of the code object"),
            std::string::npos);
  Editor frame(good);
  const uint64_t bytes_of_frame = frame.entry(0)->frame_bytes;
  for (uint64_t i = 12; i < bytes_of_frame; ++i) frame.bytes[offset + i] ^= 0x5A;
  frame.entry(0)->frame_checksum = archive::checksum(frame.bytes.data() + offset, bytes_of_frame);
  ASSERT_TRUE(open_bytes(frame.sealed(), &opened, folder).ok());
  EXPECT_EQ(opened->read(0, &image).code(), FLYDSL_AOT_ARCHIVE_CORRUPT);
}

TEST(ArchiveRefusal, TruncatedInPlaceAfterOpen) {
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  ASSERT_TRUE(open_bytes(build_or_die(small_spec()), &opened, folder).ok());
  ASSERT_EQ(truncate(opened->path().c_str(), 200), 0);
  Bytes image;
  const Status status = opened->read(0, &image);
  EXPECT_EQ(status.code(), FLYDSL_AOT_ARCHIVE_CORRUPT);
  EXPECT_NE(status.message().find("ends inside"), std::string::npos) << status.message();
}

// Frames are read when they are needed, which may be long after the file has changed.
TEST(ArchiveRefusal, RewrittenInPlaceAfterOpen) {
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  const Bytes good = build_or_die(small_spec());
  ASSERT_TRUE(open_bytes(good, &opened, folder).ok());
  archive::ArchiveSpec other = small_spec();
  for (auto &kernel : other.kernels) kernel.image[100] ^= 1;
  Bytes zeros(good.size() + 4096), noise(good.size());
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<unsigned char>(i * i / 7);
  for (const Bytes &bytes : {build_or_die(other), zeros, noise}) {
    write_bytes(opened->path(), bytes);
    for (uint32_t i = 0; i < opened->entries().size(); ++i) {
      Bytes image{1, 2, 3};
      const Status status = opened->read(i, &image);
      EXPECT_EQ(status.code(), FLYDSL_AOT_ARCHIVE_CORRUPT) << status.message();
      EXPECT_EQ(image, (Bytes{1, 2, 3}));
    }
  }
  write_bytes(opened->path(), good);
  Bytes image;
  ASSERT_TRUE(opened->read(0, &image).ok());
  EXPECT_EQ(image, fake_image(1));
}

TEST(Archive, ReplacedOrRemovedAfterOpenStaysReadable) {
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  ASSERT_TRUE(open_bytes(build_or_die(small_spec()), &opened, folder).ok());
  const std::string path = opened->path();
  write_bytes(folder.file("new"), Bytes(50));
  std::filesystem::rename(folder.file("new"), path);
  const auto expect_readable = [&](flydsl_aot_status of_a_new_one) {
    for (uint32_t i = 0; i < 3; ++i) {
      Bytes image;
      ASSERT_TRUE(opened->read(i, &image).ok());
      EXPECT_EQ(image, fake_image(i + 1));
    }
    std::unique_ptr<Archive> another;
    EXPECT_EQ(Archive::open(path, kAbiId, &another).code(), of_a_new_one);
  };
  expect_readable(FLYDSL_AOT_ARCHIVE_CORRUPT);
  std::filesystem::remove(path);
  expect_readable(FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  std::filesystem::create_directory(path);
  expect_readable(FLYDSL_AOT_ARCHIVE_IO);
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_readable(FLYDSL_AOT_ARCHIVE_IO);
}

// Reading and rewriting at the same time: an image or a status.
TEST(ArchiveRefusal, RewrittenInPlaceMeanwhile) {
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  const Bytes good = build_or_die(small_spec());
  ASSERT_TRUE(open_bytes(good, &opened, folder).ok());
  std::atomic<bool> over{false};
  std::thread writer([&] {
    const Bytes noise(good.size() + 64, 0x5a);
    for (size_t turn = 0; !over; ++turn) {
      write_bytes(opened->path(), turn % 2 ? good : noise);
      (void)truncate(opened->path().c_str(), static_cast<off_t>(turn * 131 % good.size()));
    }
  });
  for (int turn = 0; turn < 3000; ++turn) {
    Bytes image;
    const Status status = opened->read(static_cast<uint32_t>(turn % 3), &image);
    EXPECT_TRUE(status.code() == FLYDSL_AOT_OK || status.code() == FLYDSL_AOT_ARCHIVE_CORRUPT)
        << status.message();
    if (status.ok()) {
      EXPECT_EQ(image, fake_image(static_cast<unsigned>(turn % 3 + 1)));
    }
    std::unique_ptr<Archive> another;
    const Status open = Archive::open(opened->path(), kAbiId, &another);
    EXPECT_TRUE(open.code() == FLYDSL_AOT_OK || open.code() == FLYDSL_AOT_ARCHIVE_CORRUPT)
        << open.message();
  }
  over = true;
  writer.join();
}

TEST(ArchiveRefusal, NotAFile) {
  TempFolder folder;
  std::unique_ptr<Archive> opened;
  EXPECT_EQ(Archive::open(folder.file("absent"), kAbiId, &opened).code(),
            FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  EXPECT_EQ(Archive::open(folder.path(), kAbiId, &opened).code(), FLYDSL_AOT_ARCHIVE_IO);
  EXPECT_EQ(Archive::open("/dev/null", kAbiId, &opened).code(), FLYDSL_AOT_ARCHIVE_IO);
  ASSERT_EQ(mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(Archive::open(folder.file("fifo"), kAbiId, &opened).code(), FLYDSL_AOT_ARCHIVE_IO);
  EXPECT_EQ(Archive::open("", kAbiId, &opened).code(), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
}

}  // namespace
}  // namespace flydsl::test
