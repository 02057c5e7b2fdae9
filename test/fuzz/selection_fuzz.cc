// Property: entries, strings, slots and candidates of any content are refused, or every look-up in them ends inside them.
// Input: counts (entries, strings' bytes, slots, candidates), a byte each, then the tables.
#include "test/fuzz/tables_input.h"
#include "test/fuzz/use_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  using namespace flydsl::test;
  TablesInput input(data, bytes);
  flydsl::archive::Header header{};
  header.entry_count = input.byte() % 8;
  header.string_bytes = input.byte();
  header.slot_count = input.slots();
  header.candidate_count = input.byte() % 16;
  std::vector<unsigned char> index(flydsl::archive::index_bytes(header));
  input.fill(index.data(), index.size());
  use_archive(file_with_index(header, index), false);
  return 0;
}
