// Property: tuning slots, rows and cells of any content beside a sound selection table are refused, or every look-up in them ends
// inside them. Input: counts (slots, rows, cells), a byte each, then the tables.
#include "test/fuzz/tables_input.h"
#include "test/fuzz/use_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  using namespace flydsl;
  using namespace flydsl::test;
  static const std::vector<unsigned char> kSound = build_or_die(tuned_spec());
  archive::Header header;
  std::memcpy(&header, kSound.data(), sizeof header);
  header.tuning_slot_count = header.tuning_row_count = header.tuning_cell_count =
      header.dictionary_bytes = 0;
  const unsigned char *const tables = kSound.data() + sizeof header;
  std::vector<unsigned char> index(tables, tables + archive::index_bytes(header));
  TablesInput input(data, bytes);
  header.tuning_slot_count = input.slots();
  header.tuning_row_count = input.byte() % 16;
  header.tuning_cell_count = input.byte();
  const size_t before = index.size();
  index.resize(archive::index_bytes(header));
  input.fill(index.data() + before, index.size() - before);
  // The kernels' frames lie where the file of this index has room; they are not read.
  for (uint32_t i = 0; i < header.entry_count; ++i) {
    archive::Entry entry;
    std::memcpy(&entry, index.data() + i * sizeof entry, sizeof entry);
    entry.frame_offset = sizeof header + index.size() + i * 16;
    entry.frame_bytes = 16;
    std::memcpy(index.data() + i * sizeof entry, &entry, sizeof entry);
  }
  use_archive(file_with_index(header, index), false);
  return 0;
}
