#include "emulator/coverage/sweep.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "emulator/isa/decode.h"
#include "emulator/isa/disassembler.h"

namespace flydsl::emu::coverage {
namespace {

// The remaining fields of a sample: or-ed into the two dwords.
struct Fields {
  uint32_t low, high;
};
// Encodings of gfx9 (CDNA3 ISA, "Microcode formats"): fixed bits, place and width of the opcode.
struct Encoding {
  const char *name;
  uint32_t fixed;
  int shift, bits;
  std::vector<Fields> fields;
};

constexpr uint32_t sources(uint32_t a, uint32_t b, uint32_t c) {
  return a | b << 9 | c << 18;
}
constexpr uint32_t kV = 256;
// Second dwords of SDWA (whole registers, then bytes and halves) and DPP (quad_perm, row_newbcast).
constexpr uint32_t kSdwaWhole = 0x06060602, kSdwaParts = 0x0c051502, kDppQuad = 0xff00e402,
                   kDppBroadcast = 0xff015002, kSdwaScalar = 0x06068802;

const std::vector<Encoding> &encodings() {
  static const std::vector<Encoding> all = {
      {"SOP2", 0x80000000, 23, 7, {{0x00020406, 0}}},
      {"SOPK", 0xb0000000, 23, 5, {{0x00020001, 0}}},
      {"SOP1", 0xbe800000, 8, 8, {{0x00020006, 0}}},
      {"SOPC", 0xbf000000, 16, 7, {{0x00000406, 0}}},
      {"SOPP", 0xbf800000, 16, 7, {{0, 0}, {1, 0}}},
      {"SMEM", 0xc0000000, 18, 8, {{0x00020202, 16}, {0x00030202, 16}, {0, 0}}},
      {"VOP2",
       0,
       25,
       6,
       {{6u << 17 | 4u << 9 | kV | 2, 0x42280000},
        {6u << 17 | 4u << 9 | 2, 0x42280000},
        {6u << 17 | 4u << 9 | 0xf9, kSdwaWhole},
        {6u << 17 | 4u << 9 | 0xf9, kSdwaParts},
        {6u << 17 | 4u << 9 | 0xfa, kDppQuad},
        {6u << 17 | 4u << 9 | 0xfa, kDppBroadcast}}},
      {"VOP1",
       0x7e000000,
       9,
       8,
       {{6u << 17 | kV | 2, 0},
        {6u << 17 | 2, 0},
        {0, 0},
        {6u << 17 | 0xf9, kSdwaWhole},
        {6u << 17 | 0xf9, kSdwaParts},
        {6u << 17 | 0xfa, kDppQuad},
        {6u << 17 | 0xfa, kDppBroadcast}}},
      {"VOPC",
       0x7c000000,
       17,
       8,
       {{4u << 9 | kV | 2, 0}, {4u << 9 | 0xf9, 0x06060002}, {4u << 9 | 0xf9, kSdwaScalar}}},
      {"VOP3",
       0xd0000000,
       16,
       10,
       {{0x0006, sources(kV | 2, kV | 4, kV | 8)},
        {0x0006, sources(kV | 2, kV | 4, 8)},
        {0x0406, sources(kV | 2, kV | 4, 8)},
        {0x0006, sources(kV | 2, 4, 0)},
        {0x0006, sources(2, 4, 0)},
        {0x0006, sources(kV | 2, 0, 0)}}},
      // As compilers write it (op_sel_hi set), matrix results in both register files.
      // op_sel_hi as compilers write it, and as they write it for one half only.
      {"VOP3P",
       0xd3800000,
       16,
       6,
       {{0x4006, sources(kV | 2, kV | 4, kV | 8) | 0x18000000},
        {0x0006, sources(kV | 2, kV | 4, kV | 8)}}},
      // Matrix instructions and moves: results and sources in either register file.
      {"VOP3P-MAI",
       0xd3c00000,
       16,
       6,
       {{0x0010, sources(kV | 32, kV | 48, kV | 16)},
        {0x8010, sources(kV | 32, kV | 48, kV | 16)},
        {0x8010, sources(kV | 32, kV | 48, kV | 16) | 0x18000000},
        {0x0010, sources(kV | 2, 0, 0)},
        {0x0010, sources(kV | 2, 0, 0) | 0x08000000},
        {0x0010, sources(2, 0, 0)}}},
      {"DS",
       0xd8000000,
       17,
       8,
       {{0, 0x06080402},
        {0, 0x06000002},
        {0, 0x00080402},
        {0, 0x00000402},
        {0, 0x06000000},
        {0, 0x00000400},
        {0x10000, 0x00000402},
        {0x10000, 0x06000002},
        {0x10000, 0x06000000},
        {0x10000, 0x00000002},
        {0x10000, 0}}},
      {"FLAT", 0xdc000000, 18, 7, {{0, 0x06000402}, {0x10000, 0x06000402}}},
      {"GLOBAL",
       0xdc008000,
       18,
       7,
       {{0, 0x067f0402}, {0x10000, 0x067f0402}, {0, 0x06080402}, {0x2000, 0x007f0002}}},
      {"SCRATCH", 0xdc004000, 18, 7, {{0, 0x067f0402}, {0, 0x06080402}, {0x2000, 0x007f0002}}},
      {"MUBUF",
       0xe0000000,
       18,
       7,
       {{0x0000, 0x80020400},
        {0x1000, 0x80020402},
        {0x4000, 0x80020400},
        {0x11000, 0x80020402},
        {0, 0}}},
      {"MTBUF", 0xe8000000, 15, 4, {{0x00200000, 0x80020400}}},
      {"MIMG", 0xf0000000, 18, 7, {{0x0f00, 0x00020402}}},
      {"VINTRP", 0xd4000000, 16, 2, {{0x00180002, 0}}},
      {"EXP", 0xc4000000, 0, 1, {{0, 0}}},
  };
  return all;
}

class Sweeper {
 public:
  explicit Sweeper(const std::string &processor)
      : disassembler_(processor), architecture_(architecture_of(processor)) {}

  void sample(const char *encoding, const std::vector<uint32_t> &words) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(words.data());
    const size_t size = disassembler_.next(bytes, words.size() * 4, line_);
    if (!size) return;
    const size_t first = line_.find_first_not_of(" \t");
    if (first == std::string::npos) return;
    line_.erase(0, first);
    // LLVM prints operands that the instruction may not have with a comment.
    if (line_.find("/*") != std::string::npos) return;
    std::string name = line_.substr(0, line_.find(' ')), form;
    auto strip = [&](std::string_view suffix) {
      const bool has = name.size() > suffix.size() &&
                       name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
      if (has) name.resize(name.size() - suffix.size());
      return has;
    };
    if (strip("_dpp"))
      form = "dpp";
    else if (strip("_sdwa"))
      form = "sdwa";
    else if (!strip("_e32"))
      strip("_e64");
    Mnemonic &m = found_[name];
    if (m.encoding.empty()) m.encoding = encoding;
    ++m.forms[form];
    const Decoded decoded =
        decode_instruction(host_level(), architecture_, line_, bytes, size, pool_);
    if (!decoded.refusal.empty() && m.refusal.empty()) {
      m.refused_text = line_;
      m.refusal = decoded.refusal;
    }
  }
  Sweep take() { return std::move(found_); }

 private:
  Disassembler disassembler_;
  Architecture architecture_;
  ConstantPool pool_;
  std::string line_;
  Sweep found_;
};

}  // namespace

Sweep sweep(const std::string &processor) {
  Sweeper sweeper(processor);
  for (const Encoding &e : encodings())
    for (uint32_t opcode = 0; opcode < 1u << e.bits; ++opcode) {
      const uint32_t first = e.fixed | opcode << e.shift;
      // VOP3P lies among VOP3's opcodes, with fields of its own.
      if (!std::strcmp(e.name, "VOP3") && first >> 23 == 0xd3800000 >> 23) continue;
      for (const Fields &f : e.fields) sweeper.sample(e.name, {first | f.low, f.high});
    }
  // Scaled matrix instructions are two VOP3P encodings, the first of which names the scales.
  for (uint32_t prefix = 0; prefix < 128; ++prefix)
    for (uint32_t opcode = 0; opcode < 128; ++opcode)
      sweeper.sample("VOP3PX2", {0xd3804000 | prefix << 16, sources(kV | 2, kV | 4, 0) | 0x18000000,
                                 0xd3800010 | opcode << 16, sources(kV | 32, kV | 48, kV | 16)});
  return sweeper.take();
}

}  // namespace flydsl::emu::coverage
