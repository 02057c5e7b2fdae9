#include "emulator/engine/program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "emulator/engine/program_impl.h"
#include "emulator/isa/decode.h"
#include "emulator/isa/disassembler.h"
#include "emulator/isa/runtime.h"

namespace flydsl::emu {
namespace {

void refuse(Wave &wave, const Op &op) {
  fault(wave, op, -1, nullptr);
}

std::string hex_bytes(const uint8_t *bytes, size_t n) {
  std::string s;
  char word[16];
  for (size_t i = 0; i + 4 <= n; i += 4) {
    uint32_t w;
    std::memcpy(&w, bytes + i, 4);
    std::snprintf(word, sizeof word, "%s%08X", i ? " " : "", w);
    s += word;
  }
  return s;
}

void note_registers(Program &p, const Op &op) {
  for (int n = 0; n < op.operands; ++n) {
    const Operand &o = op.o[n];
    if (o.kind != Kind::kVector) continue;
    // Some operands are wider than their text tells the table; the text's count is what is read.
    const uint32_t end = o.index + o.words;
    if (o.index < 256)
      p.vector_rows = std::max(p.vector_rows, end);
    else
      p.accumulation_rows = std::max(p.accumulation_rows, end - 256);
  }
}

}  // namespace

std::shared_ptr<const Program> decode_program_for(Level level, const std::string &target,
                                                  const void *text, size_t bytes,
                                                  std::shared_ptr<const SourceLines> source) {
  auto program = std::make_shared<Program>();
  Program &p = *program;
  p.source = std::move(source);
  p.base = reinterpret_cast<uint64_t>(text);
  const auto *code = static_cast<const uint8_t *>(text);
  Disassembler disassembler(target.substr(0, target.find(':')));
  const Architecture architecture = architecture_of(target);
  ConstantPool pool;
  p.op_of_word.assign(bytes / 4 + 1, -1);
  std::vector<uint32_t> branches;
  std::string line;
  for (size_t at = 0; at + 4 <= bytes;) {
    const uint32_t index = uint32_t(p.ops.size());
    p.op_of_word[at / 4] = int32_t(index);
    p.offsets.push_back(uint32_t(at));
    p.text_begin.push_back(uint32_t(p.text.size()));
    size_t size = disassembler.ok() ? disassembler.next(code + at, bytes - at, line) : 0;
    Decoded d;
    if (size == 0) {
      size = 4;
      const size_t shown = std::min<size_t>(8, (bytes - at) & ~size_t(3));
      line = "<" + hex_bytes(code + at, shown) + ">";
      d.refusal = disassembler.ok() ? "these bytes do not decode for " + target
                                    : "LLVM has no disassembler for " + target;
    } else {
      const size_t first = line.find_first_not_of(" \t");
      line = first == std::string::npos ? "" : line.substr(first);
      d = decode_instruction(level, architecture, line, code + at, size, pool);
    }
    p.text += line;
    d.op.next_address_low = uint32_t(at + size);
    if (!d.refusal.empty()) {
      d.op.run = refuse;
      p.refusals[index] = d.refusal + " (bytes " + hex_bytes(code + at, size) + ")";
    } else {
      note_registers(p, d.op);
      // Relative register numbers may reach every register.
      if (line.rfind("s_set_gpr_idx_on", 0) == 0) p.vector_rows = p.accumulation_rows = 256;
      if (d.branch) branches.push_back(index);
    }
    p.ops.push_back(d.op);
    at += size;
  }
  for (const uint32_t index : branches) {
    Op &op = p.ops[index];
    const int64_t to = int64_t(op.next_address_low) + int64_t(op.imm) * 4;
    op.target =
        to >= 0 && to / 4 < int64_t(p.op_of_word.size()) ? p.op_of_word[size_t(to) / 4] : -1;
  }
  // Running off the end stops like any other instruction that cannot be executed.
  const uint32_t end = uint32_t(p.ops.size());
  Op stop;
  stop.run = refuse;
  p.ops.push_back(stop);
  p.offsets.push_back(uint32_t(bytes));
  p.text_begin.push_back(uint32_t(p.text.size()));
  p.text += "<end of code>";
  p.text_begin.push_back(uint32_t(p.text.size()));
  p.refusals[end] = "execution ran past the end of the code";

  const std::vector<uint32_t> &rows = pool.rows();
  p.constants.resize(rows.size() + 16);
  const uint64_t aligned = (reinterpret_cast<uint64_t>(p.constants.data()) + 63) & ~uint64_t(63);
  uint32_t *to = reinterpret_cast<uint32_t *>(aligned);
  std::copy(rows.begin(), rows.end(), to);
  p.pool = to;
  return program;
}

std::shared_ptr<const Program> decode_program(const std::string &target, const void *text,
                                              size_t bytes,
                                              std::shared_ptr<const SourceLines> source) {
  return decode_program_for(host_level(), target, text, bytes, std::move(source));
}

}  // namespace flydsl::emu
