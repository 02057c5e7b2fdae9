#include "emulator/loader/elf_file.h"

#include <algorithm>
#include <cstring>

namespace flydsl::emu {
namespace {

using namespace llvm::ELF;

// Whether [offset, offset + length) lies in [0, limit).
bool inside(uint64_t offset, uint64_t length, uint64_t limit) {
  return offset <= limit && length <= limit - offset;
}

uint64_t saturating_add(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

}  // namespace

bool looks_like_elf(const void *data, size_t bytes) {
  return bytes >= 4 && std::memcmp(data, ElfMagic, 4) == 0;
}

std::optional<ElfFile> open_elf(const void *data, size_t bytes, std::string *error) {
  const auto refuse = [&](std::string reason) {
    *error = std::move(reason);
    return std::nullopt;
  };
  if (!looks_like_elf(data, bytes)) return refuse("not an ELF file");
  Elf64_Ehdr header;
  if (bytes < sizeof header) return refuse("the file ends inside the ELF header");
  std::memcpy(&header, data, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return refuse("not a 64-bit little-endian ELF file");
  if (header.e_machine != EM_AMDGPU)
    return refuse("ELF machine " + std::to_string(header.e_machine) + ", expected 224 (AMDGPU)");
  if (header.e_ident[EI_OSABI] != ELFOSABI_AMDGPU_HSA)
    return refuse("ELF OS ABI " + std::to_string(header.e_ident[EI_OSABI]) +
                  ", expected 64 (AMDGPU HSA)");
  const uint8_t abi_version = header.e_ident[EI_ABIVERSION];
  if (abi_version < ELFABIVERSION_AMDGPU_HSA_V3 || abi_version > ELFABIVERSION_AMDGPU_HSA_V6)
    return refuse("code object version " + std::to_string(abi_version + 2) +
                  ", versions 3 to 6 are supported");
  if (header.e_type != ET_DYN)
    return refuse("ELF type " + std::to_string(header.e_type) +
                  ", expected 3 (a linked code object)");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0)
    return refuse("no program headers of the expected size");
  if (!inside(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), bytes))
    return refuse("the program headers lie past the end of the file");

  ElfFile file;
  file.data = static_cast<const uint8_t *>(data);
  file.bytes = bytes;
  file.abi_version = abi_version;
  file.flags = header.e_flags;
  file.segments.resize(header.e_phnum);
  std::memcpy(file.segments.data(), file.data + header.e_phoff,
              file.segments.size() * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr &segment : file.segments) {
    const bool has_bytes = segment.p_type == PT_LOAD || segment.p_type == PT_NOTE;
    if (has_bytes && !inside(segment.p_offset, segment.p_filesz, bytes))
      return refuse("a segment lies past the end of the file (truncated?)");
  }
  return file;
}

ElfFile::Span ElfFile::metadata_note() const {
  for (const Elf64_Phdr &segment : segments) {
    if (segment.p_type != PT_NOTE) continue;
    const uint8_t *notes = data + segment.p_offset;
    uint64_t at = 0;
    while (inside(at, sizeof(Elf64_Nhdr), segment.p_filesz)) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes + at, sizeof note);
      const uint64_t name_at = at + sizeof note;
      const uint64_t desc_at = name_at + ((uint64_t{note.n_namesz} + 3) & ~uint64_t{3});
      if (!inside(name_at, note.n_namesz, segment.p_filesz) ||
          !inside(desc_at, note.n_descsz, segment.p_filesz))
        break;
      if (note.n_type == NT_AMDGPU_METADATA && note.n_namesz == 7 &&
          std::memcmp(notes + name_at, "AMDGPU", 7) == 0)
        return {notes + desc_at, note.n_descsz};
      at = desc_at + ((uint64_t{note.n_descsz} + 3) & ~uint64_t{3});
    }
  }
  return {};
}

size_t elf_bytes_by_header(const void *data, size_t readable) {
  Elf64_Ehdr header;
  if (!looks_like_elf(data, readable) || readable < sizeof header) return 0;
  std::memcpy(&header, data, sizeof header);
  uint64_t end = sizeof header;
  const uint64_t segment_table_bytes = uint64_t{header.e_phnum} * header.e_phentsize;
  end = std::max(end, saturating_add(header.e_phoff, segment_table_bytes));
  if (header.e_shnum != 0)
    end = std::max(end,
                   saturating_add(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize));
  if (header.e_phentsize == sizeof(Elf64_Phdr) &&
      inside(header.e_phoff, segment_table_bytes, readable)) {
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      std::memcpy(&segment,
                  static_cast<const uint8_t *>(data) + header.e_phoff + i * sizeof segment,
                  sizeof segment);
      end = std::max(end, saturating_add(segment.p_offset, segment.p_filesz));
    }
  }
  return std::min<uint64_t>(end, readable);
}

}  // namespace flydsl::emu
