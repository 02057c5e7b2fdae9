// Writes the first inputs of every target into a folder each: sound files of the smallest kind, in the form that the target takes.
//
// usage: fuzz_corpus FOLDER
#include <cstdio>

#include "src/jit/disk_cache.h"
#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<unsigned char>;

void put(const fs::path &folder, const char *name, const Bytes &bytes) {
  fs::create_directories(folder);
  write_bytes((folder / name).string(), bytes);
}

Bytes with(std::initializer_list<unsigned char> first, Bytes rest) {
  rest.insert(rest.begin(), first);
  return rest;
}

archive::ArchiveSpec of_small_images(archive::ArchiveSpec spec) {
  for (size_t i = 0; i < spec.kernels.size(); ++i)
    spec.kernels[i].image = fake_image(static_cast<unsigned>(i), 100);
  return spec;
}

// As tables_input.h reads it.
unsigned char slots(uint32_t count) {
  return static_cast<unsigned char>(count == 0 ? 0 : 1 + std::countr_zero(count));
}

void archives(const fs::path &folder) {
  for (const unsigned char repair : {0, 1, 3}) {
    const std::string suffix = std::to_string(repair);
    put(folder, ("small_" + suffix).c_str(),
        with({repair}, build_or_die(of_small_images(small_spec()))));
    put(folder, ("tuned_" + suffix).c_str(),
        with({repair}, build_or_die(of_small_images(tuned_spec()))));
  }
}

void tables(const fs::path &selection, const fs::path &tuning) {
  for (const bool tuned : {false, true}) {
    const Bytes file = build_or_die(of_small_images(tuned ? tuned_spec() : small_spec()));
    archive::Header header;
    std::memcpy(&header, file.data(), sizeof header);
    const size_t first = sizeof header + header.entry_count * sizeof(archive::Entry) +
                         archive::padded8(header.string_bytes) +
                         header.slot_count * sizeof(archive::Slot) +
                         header.candidate_count * sizeof(archive::Candidate);
    if (!tuned) {
      // Frames are moved to where the target's file has room for them.
      Bytes index(file.begin() + sizeof header, file.begin() + static_cast<ptrdiff_t>(first));
      for (uint32_t i = 0; i < header.entry_count; ++i) {
        archive::Entry entry;
        std::memcpy(&entry, index.data() + i * sizeof entry, sizeof entry);
        entry.frame_offset = sizeof header + index.size() + i * 16;
        entry.frame_bytes = 16;
        std::memcpy(index.data() + i * sizeof entry, &entry, sizeof entry);
      }
      put(selection, "small",
          with({static_cast<unsigned char>(header.entry_count),
                static_cast<unsigned char>(header.string_bytes), slots(header.slot_count),
                static_cast<unsigned char>(header.candidate_count)},
               index));
    } else {
      const size_t bytes = header.tuning_slot_count * sizeof(archive::TuningSlot) +
                           header.tuning_row_count * sizeof(archive::TuningRow) +
                           header.tuning_cell_count;
      const auto begin = file.begin() + static_cast<ptrdiff_t>(first);
      put(tuning, "tuned",
          with(
              {slots(header.tuning_slot_count), static_cast<unsigned char>(header.tuning_row_count),
               static_cast<unsigned char>(header.tuning_cell_count)},
              Bytes(begin, begin + static_cast<ptrdiff_t>(bytes))));
    }
  }
  put(tuning, "none", {0, 0, 0});
}

void compiled_kernels(const fs::path &folder) {
  const TempFolder cache;
  constexpr jit::Key kKey = {1, 2};
  for (const size_t bytes : {0, 8, 200}) {
    EXPECT_TRUE(
        jit::DiskCache({cache.path()}).write(kKey, fake_image(1, std::max<size_t>(bytes, 4))));
    std::ifstream stream(cache.file(kKey.text() + ".co"), std::ios::binary);
    const Bytes file{std::istreambuf_iterator<char>(stream), {}};
    for (const unsigned char repair : {0, 1})
      put(folder, (std::to_string(bytes) + "_" + std::to_string(repair)).c_str(),
          with({repair}, file));
  }
}

// MessagePack by hand: of one kernel with an argument.
void metadata(const fs::path &folder) {
  std::string document;
  const auto text = [&](const std::string &s) {
    document += static_cast<char>(0xa0 + s.size()) + s;
  };
  document += '\x82';
  text("amdhsa.target");
  document += '\xd9' + std::string(1, '\x1a') + "amdgcn-amd-amdhsa--gfx950 ";
  text("amdhsa.kernels");
  document += "\x91\x86";
  text(".name");
  text("k");
  text(".symbol");
  text("k.kd");
  text(".kernarg_segment_size");
  document += '\x10';
  text(".vgpr_count");
  document += '\x7f';
  text(".reqd_workgroup_size");
  document += std::string("\x93\x40\x01\x01");
  text(".args");
  document += "\x91\x83";
  text(".offset");
  document += '\x08';
  text(".size");
  document += '\x08';
  text(".value_kind");
  text("by_value");
  put(folder, "kernel", {document.begin(), document.end()});
}

}  // namespace
}  // namespace flydsl::test

int main(int count, char **arguments) {
  using namespace flydsl::test;
  if (count != 2) {
    std::fprintf(stderr, "usage: fuzz_corpus FOLDER\n");
    return 2;
  }
  const fs::path folder = arguments[1];
  archives(folder / "archive_fuzz");
  tables(folder / "selection_fuzz", folder / "tuning_fuzz");
  compiled_kernels(folder / "jit_cache_fuzz");
  metadata(folder / "metadata_fuzz");
  return testing::Test::HasFailure() ? 1 : 0;
}
