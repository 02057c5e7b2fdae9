// The decoded form of a code object's text section. Only the engine and its tests see inside.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/engine/program.h"
#include "emulator/engine/source_lines.h"
#include "emulator/isa/op.h"
#include "emulator/isa/table.h"

namespace flydsl::emu {

namespace checks {
class InstructionTable;
}

class Program {
 public:
  uint64_t base = 0;  // address of the first byte
  std::vector<Op> ops;
  std::vector<uint32_t> offsets;    // byte offset of each operation
  std::vector<int32_t> op_of_word;  // operation that begins at each dword, or -1
  std::vector<uint32_t> constants;  // rows of 64 equal words, kept 64-byte aligned through `pool`
  const uint32_t *pool = nullptr;
  std::string text;                          // all instruction texts
  std::vector<uint32_t> text_begin;          // of each operation; one more at the end
  std::map<uint32_t, std::string> refusals;  // operation -> why it is not executed
  uint32_t vector_rows = 0;                  // architectural registers named anywhere
  uint32_t accumulation_rows = 0;            // accumulation registers named anywhere

  std::shared_ptr<const SourceLines> source;  // null: no debug information

  // Made by checks::instructions_of() when it is first needed.
  mutable std::mutex table_mutex;
  mutable std::shared_ptr<const checks::InstructionTable> table;

  std::string text_of(uint32_t op) const {
    return text.substr(text_begin[op], text_begin[op + 1] - text_begin[op]);
  }
};

std::shared_ptr<const Program> decode_program_for(Level level, const std::string &target,
                                                  const void *text, size_t bytes,
                                                  std::shared_ptr<const SourceLines> source = {});

}  // namespace flydsl::emu
