#include "emulator/loader/msgpack_tree.h"

#include <utility>

#include "llvm/BinaryFormat/MsgPackReader.h"

namespace flydsl::emu {
namespace {

constexpr int kDepthLimit = 16;  // code-object metadata is five deep

bool read_node(llvm::msgpack::Reader &reader, int depth, MsgpackNode *node, std::string *error) {
  if (depth > kDepthLimit) {
    *error = "metadata is nested too deeply";
    return false;
  }
  llvm::msgpack::Object object;
  llvm::Expected<bool> got = reader.read(object);
  if (!got) {
    *error = "metadata: " + llvm::toString(got.takeError());
    return false;
  }
  if (!*got) {
    *error = "metadata ends in the middle";
    return false;
  }
  using llvm::msgpack::Type;
  switch (object.Kind) {
    case Type::UInt:
      node->kind = MsgpackNode::Kind::kUnsigned;
      node->number = object.UInt;
      return true;
    case Type::Int:  // the writer may choose the signed form for a small positive number
      if (object.Int >= 0) {
        node->kind = MsgpackNode::Kind::kUnsigned;
        node->number = static_cast<uint64_t>(object.Int);
      }
      return true;
    case Type::String:
      node->kind = MsgpackNode::Kind::kString;
      node->text = object.Raw.str();
      return true;
    case Type::Array:
      node->kind = MsgpackNode::Kind::kArray;
      // Each element takes at least one byte of input, so a length that lies ends the loop early.
      for (size_t i = 0; i < object.Length; ++i) {
        if (!read_node(reader, depth + 1, &node->elements.emplace_back(), error)) return false;
      }
      return true;
    case Type::Map:
      node->kind = MsgpackNode::Kind::kMap;
      for (size_t i = 0; i < object.Length; ++i) {
        MsgpackNode key, value;
        if (!read_node(reader, depth + 1, &key, error)) return false;
        if (!read_node(reader, depth + 1, &value, error)) return false;
        if (key.kind != MsgpackNode::Kind::kString) continue;
        node->keys.push_back(std::move(key.text));
        node->elements.push_back(std::move(value));
      }
      return true;
    default:
      return true;
  }
}

}  // namespace

const MsgpackNode *MsgpackNode::field(const char *name) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == name) return &elements[i];
  }
  return nullptr;
}

std::optional<MsgpackNode> parse_msgpack(const void *data, size_t bytes, std::string *error) {
  llvm::msgpack::Reader reader(llvm::StringRef(static_cast<const char *>(data), bytes));
  MsgpackNode root;
  if (!read_node(reader, 0, &root, error)) return std::nullopt;
  return root;
}

}  // namespace flydsl::emu
