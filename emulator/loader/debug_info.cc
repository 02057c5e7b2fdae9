#include "emulator/loader/debug_info.h"

#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "emulator/loader/entry_bounds.h"
#include "emulator/loader/line_bounds.h"
#include "llvm/DebugInfo/DIContext.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/MemoryBuffer.h"

namespace flydsl::emu {
namespace {

using namespace llvm::ELF;

constexpr char kPrefix[] = ".debug_";
// What look-ups of lines and inlined calls read, of DWARF 2 to 5.
constexpr const char *kSections[] = {"info", "abbrev", "line",     "line_str",   "str",
                                     "addr", "ranges", "rnglists", "str_offsets"};
// LLVM's own form of .debug_info takes up to 32 times its bytes.
constexpr uint64_t kLargestSectionBytes = uint64_t{64} << 20;

bool inside(uint64_t offset, uint64_t length, uint64_t limit) {
  return offset <= limit && length <= limit - offset;
}

std::optional<std::vector<uint8_t>> inflated(const std::vector<uint8_t> &bytes) {
  Elf64_Chdr header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool zlib = header.ch_type == ELFCOMPRESS_ZLIB;
  if (header.ch_size > kLargestSectionBytes || (!zlib && header.ch_type != ELFCOMPRESS_ZSTD) ||
      !(zlib ? llvm::compression::zlib::isAvailable() : llvm::compression::zstd::isAvailable()))
    return std::nullopt;
  std::vector<uint8_t> plain(header.ch_size);
  size_t got = plain.size();
  const auto in = llvm::ArrayRef(bytes).drop_front(sizeof header);
  llvm::Error error = zlib ? llvm::compression::zlib::decompress(in, plain.data(), got)
                           : llvm::compression::zstd::decompress(in, plain.data(), got);
  if (error) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  plain.resize(got);
  return plain;
}

}  // namespace

DebugSections debug_sections_of(const ElfFile &file) {
  DebugSections found;
  Elf64_Ehdr header;
  std::memcpy(&header, file.data, sizeof header);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
      !inside(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), file.bytes))
    return found;
  const auto section = [&](uint32_t index) {
    Elf64_Shdr value;
    std::memcpy(&value, file.data + header.e_shoff + uint64_t{index} * sizeof value, sizeof value);
    return value;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  if (!inside(names.sh_offset, names.sh_size, file.bytes)) return found;
  for (uint32_t i = 1; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (s.sh_type == SHT_NOBITS || s.sh_size > kLargestSectionBytes ||
        !inside(s.sh_offset, s.sh_size, file.bytes))
      continue;
    for (const char *wanted : kSections) {
      const std::string name = std::string(kPrefix) + wanted;
      if (!inside(s.sh_name, name.size() + 1, names.sh_size) ||
          std::memcmp(file.data + names.sh_offset + s.sh_name, name.c_str(), name.size() + 1) != 0)
        continue;
      const uint8_t *begin = file.data + s.sh_offset;
      found[wanted] = {(s.sh_flags & SHF_COMPRESSED) != 0, {begin, begin + s.sh_size}};
    }
  }
  if (found.count("line") == 0 || found.count("info") == 0) found.clear();
  return found;
}

class DwarfReader {
 public:
  explicit DwarfReader(DebugSections sections) : sections_(std::move(sections)) {}

  std::vector<SourceFrame> frames(uint64_t address) {
    std::lock_guard lock(mutex_);
    if (!opened_) open();
    opened_ = true;
    if (!context_) return {};
    using Kind = llvm::DILineInfoSpecifier::FileLineInfoKind;
    const llvm::DILineInfoSpecifier wanted(Kind::AbsoluteFilePath, llvm::DINameKind::LinkageName,
                                           /*ApproximateLine=*/true);
    const llvm::DIInliningInfo info = context_->getInliningInfoForAddress(
        {address, llvm::object::SectionedAddress::UndefSection}, wanted);
    std::vector<SourceFrame> frames;
    for (uint32_t i = 0; i < info.getNumberOfFrames(); ++i) {
      const llvm::DILineInfo &frame = info.getFrame(i);
      // Line 0: code that stands for no line of the source.
      if (frame.Line == 0 || frame.FileName == llvm::DILineInfo::BadString) continue;
      const bool named = frame.FunctionName != llvm::DILineInfo::BadString;
      frames.push_back({frame.FileName, frame.Line, frame.Column,
                        named ? frame.FunctionName : std::string(), frame.IsApproximateLine});
    }
    return frames;
  }

 private:
  void open() {
    llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> buffers;
    for (auto &[name, section] : sections_) {
      if (section.compressed) {
        auto plain = inflated(section.bytes);
        if (!plain) return;
        section = {false, std::move(*plain)};
      }
      const llvm::StringRef text(reinterpret_cast<const char *>(section.bytes.data()),
                                 section.bytes.size());
      buffers["debug_" + name] = llvm::MemoryBuffer::getMemBuffer(text, "", false);
    }
    if (!line_tables_are_bounded(sections_["line"].bytes) ||
        !entries_are_bounded(sections_["info"].bytes, sections_["abbrev"].bytes))
      return;
    // What is wrong with them is nobody's question: no line is the answer.
    const auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
    context_ = llvm::DWARFContext::create(buffers, 8, true, ignore, ignore);
  }

  std::mutex mutex_;
  bool opened_ = false;
  DebugSections sections_;
  std::unique_ptr<llvm::DWARFContext> context_;  // refers to sections_
};

namespace {

class Lines : public SourceLines {
 public:
  Lines(std::shared_ptr<DwarfReader> reader, uint64_t file_address)
      : reader_(std::move(reader)), file_address_(file_address) {}
  std::vector<SourceFrame> frames(uint64_t code_offset) const override {
    return reader_->frames(file_address_ + code_offset);
  }

 private:
  std::shared_ptr<DwarfReader> reader_;
  uint64_t file_address_;
};

}  // namespace

DebugInfo::DebugInfo(DebugSections sections) {
  if (!sections.empty()) reader_ = std::make_shared<DwarfReader>(std::move(sections));
}

std::shared_ptr<const SourceLines> DebugInfo::lines_at(uint64_t file_address) const {
  if (!reader_) return nullptr;
  return std::make_shared<Lines>(reader_, file_address);
}

}  // namespace flydsl::emu
