// The parts of an AMDGPU ELF file that loading needs: identification, program headers, the metadata
// note. Every read is checked against the file's size; the file may be anything. Layouts:
// llvm/BinaryFormat/ELF.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/BinaryFormat/ELF.h"

namespace flydsl::emu {

struct ElfFile {
  const uint8_t *data = nullptr;
  size_t bytes = 0;
  uint8_t abi_version = 0;  // e_ident[EI_ABIVERSION]
  uint32_t flags = 0;       // e_flags
  std::vector<llvm::ELF::Elf64_Phdr> segments;

  struct Span {
    const uint8_t *data = nullptr;
    size_t bytes = 0;
  };
  // The NT_AMDGPU_METADATA note; empty when there is none.
  Span metadata_note() const;
};

// Whether the bytes begin like an ELF file for any machine.
bool looks_like_elf(const void *data, size_t bytes);

// Accepts 64-bit little-endian AMDGPU shared objects for HSA, code object v3 to v6.
std::optional<ElfFile> open_elf(const void *data, size_t bytes, std::string *error);

// How many bytes an image takes by its own headers: the far end of its segments, sections and
// header tables. 0 when `readable` bytes do not hold an ELF header. For callers who get an address
// without a size (hipModuleLoadData).
size_t elf_bytes_by_header(const void *data, size_t readable);

}  // namespace flydsl::emu
