// A MessagePack document as a tree. LLVM's msgpack::Document has undefined behaviour when a map's
// key is a map, and damaged code objects contain anything; this keeps to LLVM's byte reader and
// bounds depth and size itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flydsl::emu {

struct MsgpackNode {
  enum class Kind : uint8_t { kOther, kUnsigned, kString, kArray, kMap };

  Kind kind = Kind::kOther;
  uint64_t number = 0;
  std::string text;
  std::vector<MsgpackNode> elements;  // of an array; of a map, its values
  std::vector<std::string> keys;  // of a map, beside elements; entries with other keys are left out

  // The field of a map, or nullptr.
  const MsgpackNode *field(const char *name) const;
};

// nullopt with a reason when the bytes are no document, or one nested more than 16 deep.
std::optional<MsgpackNode> parse_msgpack(const void *data, size_t bytes, std::string *error);

}  // namespace flydsl::emu
