// Property: any bytes as an archive end in a refusal with a reason, or in an archive whose parts are what it says.
// Input: a byte (1: checksums of header and index are made right, 2: of the frames), the file.
#include "test/fuzz/repair.h"
#include "test/fuzz/use_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  using namespace flydsl::test;
  if (bytes == 0) return 0;
  std::vector<unsigned char> file(data + 1, data + bytes);
  if (data[0] & 2) repair_frames(&file);
  if (data[0] & 1) repair_header(&file);
  use_archive(file, true);
  return 0;
}
