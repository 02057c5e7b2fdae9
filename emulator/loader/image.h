// A code object in memory: segments copied to host memory at their relative places, relocations
// applied, symbols found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/loader/elf_file.h"

namespace flydsl::emu {

class Image {
 public:
  struct Segment {
    uint64_t offset = 0;  // from base()
    uint64_t bytes = 0;
    uint64_t file_bytes = 0;  // of these, from the file; the rest is zero
    bool writable = false;
    bool executable = false;
  };
  struct Symbol {
    uint64_t offset = 0;  // from base()
    uint64_t bytes = 0;
    uint8_t type = 0;  // STT_OBJECT, STT_FUNC, STT_AMDGPU_HSA_KERNEL, ...
  };

  // nullptr with a reason when the file cannot be laid out.
  static std::unique_ptr<Image> load(const ElfFile &file, std::string *error);
  ~Image();
  Image(const Image &) = delete;
  Image &operator=(const Image &) = delete;

  uint64_t base() const { return reinterpret_cast<uint64_t>(memory_); }
  // Where the file has what lies at an offset: symbols' and debug information's addresses.
  uint64_t file_address(uint64_t offset) const { return lowest_address_ + offset; }
  const std::vector<Segment> &segments() const { return segments_; }
  // Defined dynamic symbols by name.
  const std::map<std::string, Symbol> &symbols() const { return symbols_; }
  // Whether all of [offset, offset + bytes) lies in one segment.
  bool contains(uint64_t offset, uint64_t bytes) const;
  // Reads a trivially copyable value; false when it is not all in one segment.
  template <typename T>
  bool read(uint64_t offset, T *value) const {
    return read_bytes(offset, value, sizeof *value);
  }

 private:
  struct DynamicTable;

  Image() = default;
  bool read_bytes(uint64_t offset, void *to, size_t bytes) const;
  bool write_bytes(uint64_t offset, const void *from, size_t bytes);
  bool place_segments(const ElfFile &file, std::string *error);
  bool read_dynamic_table(const ElfFile &file, DynamicTable *table, std::string *error) const;
  uint64_t symbol_count(const DynamicTable &table) const;
  bool symbol_name(const DynamicTable &table, uint32_t name_offset, std::string *name) const;
  bool read_symbols(const DynamicTable &table, std::string *error);
  bool relocate(const DynamicTable &table, std::string *error);
  bool apply(const llvm::ELF::Elf64_Rela &relocation, const DynamicTable &table,
             std::string *error);

  char *memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
  uint64_t lowest_address_ = 0;  // of the file's address range, now at base()
  std::vector<Segment> segments_;
  std::map<std::string, Symbol> symbols_;
};

}  // namespace flydsl::emu
