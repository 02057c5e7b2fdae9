// Property: any bytes as an ELF file, and as the metadata in one, are refused with a reason or give kernels whose arguments lie in
// their segments.
#include <cstdio>
#include <cstdlib>

#include "emulator/loader/elf_file.h"
#include "emulator/loader/metadata.h"

namespace {

void require(bool condition, const char *what) {
  if (condition) return;
  std::fprintf(stderr, "metadata_fuzz: %s\n", what);
  std::abort();
}

void use(const void *data, size_t bytes) {
  flydsl::emu::CodeObjectMetadata metadata;
  std::string error;
  if (!flydsl::emu::parse_metadata(data, bytes, &metadata, &error)) {
    require(!error.empty(), "no reason");
    return;
  }
  for (const flydsl::emu::KernelMetadata &kernel : metadata.kernels) {
    for (const flydsl::emu::KernelArgument &argument : kernel.arguments)
      require(uint64_t{argument.offset_bytes} + argument.size_bytes <= kernel.kernarg_bytes,
              "an argument outside of its segment");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  std::string error;
  if (const auto elf = flydsl::emu::open_elf(data, bytes, &error)) {
    const auto note = elf->metadata_note();
    require(note.bytes == 0 ||
                (note.data >= data && note.bytes <= bytes - static_cast<size_t>(note.data - data)),
            "a note outside of the file");
    use(note.data, note.bytes);
  } else {
    require(!error.empty(), "no reason");
  }
  use(data, bytes);
  return 0;
}
