#include "emulator/loader/image.h"

#include <algorithm>
#include <cstring>

#include "emulator/memory/host_pages.h"

namespace flydsl::emu {
namespace {

using namespace llvm::ELF;

// Real code objects take kilobytes to a few hundred megabytes; more is damage.
constexpr uint64_t kLargestImageBytes = uint64_t{1} << 30;
constexpr uint64_t kMostSymbols = uint64_t{1} << 22;

std::string relocation_name(uint32_t type) {
  switch (type) {
#define ELF_RELOC(name, value) \
  case value:                  \
    return #name;
#include "llvm/BinaryFormat/ELFRelocs/AMDGPU.def"
#undef ELF_RELOC
    default:
      return "relocation type " + std::to_string(type);
  }
}

}  // namespace

// Offsets from the image's base; 0 bytes where the file has no such table.
struct Image::DynamicTable {
  uint64_t symbols = 0;
  uint64_t strings = 0, string_bytes = 0;
  uint64_t hash = 0, gnu_hash = 0;
  bool has_symbols = false, has_hash = false, has_gnu_hash = false;
  uint64_t relocations = 0, relocation_bytes = 0;
};

Image::~Image() {
  if (memory_ != nullptr) unmap_guarded_pages(memory_, memory_bytes_);
}

std::unique_ptr<Image> Image::load(const ElfFile &file, std::string *error) {
  std::unique_ptr<Image> image(new Image);
  DynamicTable table;
  if (!image->place_segments(file, error) || !image->read_dynamic_table(file, &table, error) ||
      !image->read_symbols(table, error) || !image->relocate(table, error))
    return nullptr;
  return image;
}

bool Image::contains(uint64_t offset, uint64_t bytes) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const Segment &segment) {
    return offset >= segment.offset && offset - segment.offset <= segment.bytes &&
           bytes <= segment.bytes - (offset - segment.offset);
  });
}

bool Image::read_bytes(uint64_t offset, void *to, size_t bytes) const {
  if (!contains(offset, bytes)) return false;
  std::memcpy(to, memory_ + offset, bytes);
  return true;
}

bool Image::write_bytes(uint64_t offset, const void *from, size_t bytes) {
  if (!contains(offset, bytes)) return false;
  std::memcpy(memory_ + offset, from, bytes);
  return true;
}

bool Image::place_segments(const ElfFile &file, std::string *error) {
  uint64_t lowest = UINT64_MAX, highest = 0;
  for (const Elf64_Phdr &segment : file.segments) {
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    if (segment.p_filesz > segment.p_memsz || segment.p_vaddr + segment.p_memsz < segment.p_vaddr) {
      *error = "a segment's sizes contradict each other";
      return false;
    }
    lowest = std::min(lowest, segment.p_vaddr);
    highest = std::max(highest, segment.p_vaddr + segment.p_memsz);
  }
  if (highest == 0) {
    *error = "nothing to load";
    return false;
  }
  lowest &= ~uint64_t{host_page_bytes() - 1};  // keeps every address's place in its page
  if (highest - lowest > kLargestImageBytes) {
    *error =
        "takes " + std::to_string(highest - lowest) + " bytes of address space, the limit is 1 GiB";
    return false;
  }
  memory_bytes_ = highest - lowest;
  memory_ = static_cast<char *>(map_guarded_pages(memory_bytes_));
  if (memory_ == nullptr) {
    *error = "out of memory for " + std::to_string(memory_bytes_) + " bytes of code and data";
    return false;
  }
  lowest_address_ = lowest;
  for (const Elf64_Phdr &segment : file.segments) {
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    const uint64_t offset = segment.p_vaddr - lowest;
    for (const Segment &other : segments_) {
      if (offset < other.offset + other.bytes && other.offset < offset + segment.p_memsz) {
        *error = "segments overlap";
        return false;
      }
    }
    std::memcpy(memory_ + offset, file.data + segment.p_offset, segment.p_filesz);
    segments_.push_back({offset, segment.p_memsz, segment.p_filesz, (segment.p_flags & PF_W) != 0,
                         (segment.p_flags & PF_X) != 0});
  }
  return true;
}

bool Image::read_dynamic_table(const ElfFile &file, DynamicTable *table, std::string *error) const {
  const Elf64_Phdr *dynamic = nullptr;
  for (const Elf64_Phdr &segment : file.segments) {
    if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
  }
  if (dynamic == nullptr) {
    *error = "no dynamic table";
    return false;
  }
  uint64_t entry_bytes = sizeof(Elf64_Rela);
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->p_memsz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    if (!read(dynamic->p_vaddr - lowest_address_ + at, &entry)) {
      *error = "the dynamic table lies outside of the segments";
      return false;
    }
    const uint64_t offset = entry.d_un.d_ptr - lowest_address_;
    switch (entry.d_tag) {
      case DT_NULL:
        at = dynamic->p_memsz - sizeof(Elf64_Dyn);
        break;  // the end
      case DT_SYMTAB:
        table->symbols = offset, table->has_symbols = true;
        break;
      case DT_STRTAB:
        table->strings = offset;
        break;
      case DT_STRSZ:
        table->string_bytes = entry.d_un.d_val;
        break;
      case DT_HASH:
        table->hash = offset, table->has_hash = true;
        break;
      case DT_GNU_HASH:
        table->gnu_hash = offset, table->has_gnu_hash = true;
        break;
      case DT_RELA:
        table->relocations = offset;
        break;
      case DT_RELASZ:
        table->relocation_bytes = entry.d_un.d_val;
        break;
      case DT_RELAENT:
        entry_bytes = entry.d_un.d_val;
        break;
      case DT_REL:
      case DT_JMPREL:
      case DT_RELR:
        *error = "relocation tables other than DT_RELA are not supported";
        return false;
      default:
        break;
    }
  }
  if (entry_bytes != sizeof(Elf64_Rela)) {
    *error = "relocations of an unexpected size";
    return false;
  }
  return true;
}

// The dynamic table does not state it: DT_HASH has one chain entry per symbol; DT_GNU_HASH ends
// each chain with a set lowest bit.
uint64_t Image::symbol_count(const DynamicTable &table) const {
  if (table.has_hash) {
    uint32_t chains = 0;
    return read(table.hash + 4, &chains) ? chains : 0;
  }
  uint32_t header[4] = {};  // buckets, first hashed symbol, bloom words, bloom shift
  if (!table.has_gnu_hash || !read(table.gnu_hash, &header)) return 0;
  const uint64_t buckets = table.gnu_hash + 16 + uint64_t{header[2]} * 8;
  uint64_t last = 0;
  for (uint64_t i = 0; i < header[0]; ++i) {
    uint32_t first = 0;
    if (!read(buckets + i * 4, &first)) return 0;
    last = std::max<uint64_t>(last, first);
  }
  if (last < header[1]) return header[1];
  const uint64_t chains = buckets + uint64_t{header[0]} * 4;
  for (uint32_t hash = 0; (hash & 1) == 0; ++last) {
    if (!read(chains + (last - header[1]) * 4, &hash)) return 0;
  }
  return last;
}

bool Image::symbol_name(const DynamicTable &table, uint32_t name_offset, std::string *name) const {
  if (name_offset >= table.string_bytes || !contains(table.strings, table.string_bytes))
    return false;
  const char *text = memory_ + table.strings + name_offset;
  const size_t bytes = strnlen(text, table.string_bytes - name_offset);
  if (bytes == table.string_bytes - name_offset) return false;
  name->assign(text, bytes);
  return true;
}

bool Image::read_symbols(const DynamicTable &table, std::string *error) {
  const uint64_t count = table.has_symbols ? symbol_count(table) : 0;
  if (count > kMostSymbols || (count != 0 && !contains(table.symbols, count * sizeof(Elf64_Sym)))) {
    *error = "the symbol table lies outside of the segments";
    return false;
  }
  for (uint64_t i = 1; i < count; ++i) {
    Elf64_Sym symbol;
    std::string name;
    if (!read(table.symbols + i * sizeof symbol, &symbol) ||
        !symbol_name(table, symbol.st_name, &name)) {
      *error = "a symbol's name lies outside of the string table";
      return false;
    }
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
    symbols_[name] = {symbol.st_value - lowest_address_, symbol.st_size, symbol.getType()};
  }
  return true;
}

bool Image::relocate(const DynamicTable &table, std::string *error) {
  if (!contains(table.relocations, table.relocation_bytes)) {
    if (table.relocation_bytes == 0) return true;
    *error = "the relocation table lies outside of the segments";
    return false;
  }
  for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= table.relocation_bytes;
       at += sizeof(Elf64_Rela)) {
    Elf64_Rela relocation;
    if (!read(table.relocations + at, &relocation) || !apply(relocation, table, error))
      return false;
  }
  return true;
}

// LLVM User Guide for AMDGPU Backend, "Relocation Records": S symbol, A addend, P place, B base.
bool Image::apply(const Elf64_Rela &relocation, const DynamicTable &table, std::string *error) {
  const uint32_t type = relocation.getType();
  const uint64_t place = relocation.r_offset - lowest_address_;
  const uint64_t bias = base() - lowest_address_;  // file address -> memory address
  uint64_t value = bias + static_cast<uint64_t>(relocation.r_addend);
  size_t bytes = 8;
  if (type == R_AMDGPU_NONE) return true;
  if (type != R_AMDGPU_RELATIVE64) {
    const uint64_t at = table.symbols + uint64_t{relocation.getSymbol()} * sizeof(Elf64_Sym);
    Elf64_Sym symbol;
    std::string name;
    if (!table.has_symbols || !read(at, &symbol) || !symbol_name(table, symbol.st_name, &name)) {
      *error = "a relocation names a symbol that does not exist";
      return false;
    }
    if (symbol.st_shndx == SHN_UNDEF) {
      *error = "undefined symbol " + name;
      return false;
    }
    value += symbol.st_value;
    const uint64_t relative = value - (base() + place);
    switch (type) {
      case R_AMDGPU_ABS64:
        break;
      case R_AMDGPU_REL64:
        value = relative;
        break;
      case R_AMDGPU_ABS32_LO:
        bytes = 4;
        break;
      case R_AMDGPU_ABS32_HI:
        value >>= 32, bytes = 4;
        break;
      case R_AMDGPU_REL32_LO:
        value = relative, bytes = 4;
        break;
      case R_AMDGPU_REL32_HI:
        value = relative >> 32, bytes = 4;
        break;
      default:
        *error = "unsupported " + relocation_name(type) + " against " + name;
        return false;
    }
  }
  if (!write_bytes(place, &value, bytes)) {
    *error = relocation_name(type) + " changes a place outside of the segments";
    return false;
  }
  return true;
}

}  // namespace flydsl::emu
