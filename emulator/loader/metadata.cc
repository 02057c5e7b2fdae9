#include "emulator/loader/metadata.h"

#include <limits>

#include "emulator/loader/msgpack_tree.h"

namespace flydsl::emu {
namespace {

using Kind = MsgpackNode::Kind;

// Absent fields keep `*value`.
bool read_u32(const MsgpackNode &map, const char *name, uint32_t *value, std::string *error) {
  const MsgpackNode *field = map.field(name);
  if (field == nullptr) return true;
  if (field->kind != Kind::kUnsigned || field->number > std::numeric_limits<uint32_t>::max()) {
    *error = std::string("metadata: ") + name + " is not a 32-bit number";
    return false;
  }
  *value = static_cast<uint32_t>(field->number);
  return true;
}

bool read_text(const MsgpackNode &map, const char *name, std::string *value, std::string *error) {
  const MsgpackNode *field = map.field(name);
  if (field == nullptr || field->kind != Kind::kString) {
    *error = std::string("metadata: ") + name + " is missing or no text";
    return false;
  }
  *value = field->text;
  return true;
}

bool read_argument(const MsgpackNode &map, uint32_t kernarg_bytes, KernelArgument *argument,
                   std::string *error) {
  if (!read_text(map, ".value_kind", &argument->value_kind, error)) return false;
  if (map.field(".offset") == nullptr || map.field(".size") == nullptr) {
    *error = "metadata: a kernel argument lacks .offset or .size";
    return false;
  }
  if (!read_u32(map, ".offset", &argument->offset_bytes, error) ||
      !read_u32(map, ".size", &argument->size_bytes, error))
    return false;
  if (uint64_t{argument->offset_bytes} + argument->size_bytes > kernarg_bytes) {
    *error = "metadata: a kernel argument lies outside of the kernel-argument segment of " +
             std::to_string(kernarg_bytes) + " bytes";
    return false;
  }
  return true;
}

bool read_kernel(const MsgpackNode &map, KernelMetadata *kernel, std::string *error) {
  if (!read_text(map, ".name", &kernel->name, error) ||
      !read_text(map, ".symbol", &kernel->symbol, error) ||
      !read_u32(map, ".kernarg_segment_size", &kernel->kernarg_bytes, error) ||
      !read_u32(map, ".kernarg_segment_align", &kernel->kernarg_align_bytes, error) ||
      !read_u32(map, ".group_segment_fixed_size", &kernel->lds_bytes, error) ||
      !read_u32(map, ".private_segment_fixed_size", &kernel->private_bytes, error) ||
      !read_u32(map, ".wavefront_size", &kernel->wave_size, error) ||
      !read_u32(map, ".max_flat_workgroup_size", &kernel->max_workgroup_size, error) ||
      !read_u32(map, ".vgpr_count", &kernel->vgpr_count, error) ||
      !read_u32(map, ".sgpr_count", &kernel->sgpr_count, error) ||
      !read_u32(map, ".vgpr_spill_count", &kernel->vgpr_spill_count, error) ||
      !read_u32(map, ".sgpr_spill_count", &kernel->sgpr_spill_count, error))
    return false;
  if (const MsgpackNode *block = map.field(".reqd_workgroup_size")) {
    if (block->kind != Kind::kArray || block->elements.size() != 3) {
      *error = "metadata: .reqd_workgroup_size is not three numbers";
      return false;
    }
    for (int axis = 0; axis < 3; ++axis)
      kernel->required_block[axis] = static_cast<uint32_t>(block->elements[axis].number);
  }
  if (const MsgpackNode *arguments = map.field(".args")) {
    for (const MsgpackNode &argument : arguments->elements) {
      if (!read_argument(argument, kernel->kernarg_bytes, &kernel->arguments.emplace_back(), error))
        return false;
    }
  }
  return true;
}

}  // namespace

bool parse_metadata(const void *data, size_t bytes, CodeObjectMetadata *metadata,
                    std::string *error) {
  const std::optional<MsgpackNode> root = parse_msgpack(data, bytes, error);
  if (!root) return false;
  if (root->kind != Kind::kMap) {
    *error = "metadata is no map";
    return false;
  }
  if (root->field("amdhsa.target") != nullptr &&
      !read_text(*root, "amdhsa.target", &metadata->target, error))
    return false;
  if (const MsgpackNode *kernels = root->field("amdhsa.kernels")) {
    for (const MsgpackNode &kernel : kernels->elements) {
      if (!read_kernel(kernel, &metadata->kernels.emplace_back(), error)) return false;
    }
  }
  return true;
}

}  // namespace flydsl::emu
