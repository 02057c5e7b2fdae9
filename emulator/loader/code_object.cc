#include "emulator/loader/code_object.h"

#include "emulator/engine/program.h"
#include "emulator/loader/compressed_bundle.h"
#include "emulator/loader/elf_file.h"
#include "emulator/loader/offload_bundle.h"
#include "emulator/memory/address_space.h"
#include "llvm/Support/AMDHSAKernelDescriptor.h"

namespace flydsl::emu {
namespace {

constexpr size_t kLargestMetadataBytes = size_t{8} << 20;

LoadResult failed(LoadStatus status, std::string error) {
  LoadResult result;
  result.status = status;
  result.error = std::move(error);
  return result;
}

}  // namespace

CodeObject::~CodeObject() {
  if (!remembered_) return;
  for (const Image::Segment &segment : image_->segments())
    AddressSpace::instance().forget(reinterpret_cast<void *>(image_->base() + segment.offset));
}

const LoadedKernel *CodeObject::find_kernel(const std::string &name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

bool CodeObject::find_global(const std::string &name, void **address, size_t *bytes) const {
  const auto found = image_->symbols().find(name);
  if (found == image_->symbols().end() || found->second.type != llvm::ELF::STT_OBJECT ||
      !image_->contains(found->second.offset, found->second.bytes))
    return false;
  *address = reinterpret_cast<void *>(image_->base() + found->second.offset);
  *bytes = found->second.bytes;
  return true;
}

bool CodeObject::add_kernels(const CodeObjectMetadata &metadata, const DebugInfo &debug,
                             const TargetId &device, std::string *error) {
  struct Text {
    Image::Segment segment;
    std::shared_ptr<const Program> program;
  };
  std::vector<Text> texts;
  for (const Image::Segment &segment : image_->segments()) {
    if (!segment.executable) continue;
    const void *text = reinterpret_cast<const void *>(image_->base() + segment.offset);
    texts.push_back(
        {segment, decode_program(to_string(device), text, segment.file_bytes,
                                 debug.lines_at(image_->file_address(segment.offset)))});
  }
  for (const KernelMetadata &described : metadata.kernels) {
    const auto symbol = image_->symbols().find(described.symbol);
    llvm::amdhsa::kernel_descriptor_t descriptor;
    if (symbol == image_->symbols().end() || !image_->read(symbol->second.offset, &descriptor)) {
      *error = "kernel " + described.name + ": no descriptor " + described.symbol;
      return false;
    }
    const uint64_t entry =
        symbol->second.offset + static_cast<uint64_t>(descriptor.kernel_code_entry_byte_offset);
    const Text *text = nullptr;
    for (const Text &candidate : texts) {
      if (entry >= candidate.segment.offset &&
          entry - candidate.segment.offset < candidate.segment.file_bytes)
        text = &candidate;
    }
    // "kernel_code_entry_byte_offset ... must be 256 byte aligned"; 4 bytes is what the engine
    // relies on.
    if (text == nullptr || entry % 4 != 0) {
      *error = "kernel " + described.name + ": its entry lies outside of the executable segments";
      return false;
    }
    if (descriptor.kernarg_size > described.kernarg_bytes) {
      *error = "kernel " + described.name + ": descriptor and metadata disagree about arguments";
      return false;
    }
    LoadedKernel &loaded = kernels_[described.name];
    loaded.metadata = described;
    Kernel &kernel = loaded.kernel;
    kernel.name = described.name;
    kernel.program = text->program;
    kernel.entry_address = image_->base() + entry;
    kernel.compute_pgm_rsrc1 = descriptor.compute_pgm_rsrc1;
    kernel.compute_pgm_rsrc2 = descriptor.compute_pgm_rsrc2;
    kernel.compute_pgm_rsrc3 = descriptor.compute_pgm_rsrc3;
    kernel.kernel_code_properties = descriptor.kernel_code_properties;
    kernel.kernarg_preload = descriptor.kernarg_preload;
    kernel.lds_bytes = descriptor.group_segment_fixed_size;
    kernel.private_bytes = descriptor.private_segment_fixed_size;
    kernel.kernarg_bytes = described.kernarg_bytes;
    // Bit 10: ENABLE_WAVEFRONT_SIZE32, gfx10 and later.
    kernel.wave_size = (descriptor.kernel_code_properties & (1u << 10)) != 0 ? 32 : 64;
    kernel.max_workgroup_size = described.max_workgroup_size;
  }
  return true;
}

LoadResult load_code_object(const void *data, size_t bytes, const TargetId &device) {
  std::string error;
  InflatedBundle inflated;
  if (looks_like_compressed_bundle(data, bytes)) {
    inflated = inflate_bundle(data, bytes, &error);
    if (!inflated.data) return failed(LoadStatus::kInvalidImage, error);
    data = inflated.data.get();
    bytes = inflated.bytes;
    if (!looks_like_offload_bundle(data, bytes))
      return failed(LoadStatus::kInvalidImage,
                    "compressed offload bundle: its contents are no offload bundle");
  }
  if (looks_like_offload_bundle(data, bytes)) {
    BundleEntry entry;
    bool damaged = false;
    if (!pick_bundle_entry(data, bytes, device, &entry, &damaged, &error))
      return failed(damaged ? LoadStatus::kInvalidImage : LoadStatus::kWrongTarget, error);
    data = entry.data;
    bytes = entry.bytes;
  }
  const std::optional<ElfFile> file = open_elf(data, bytes, &error);
  if (!file) return failed(LoadStatus::kInvalidImage, error);

  LoadResult result;
  std::shared_ptr<CodeObject> object(new CodeObject);
  if (!target_id_of_elf(file->abi_version, file->flags, &object->target_, &error) ||
      !device_accepts(device, object->target_, &error))
    return failed(LoadStatus::kWrongTarget, error);

  const ElfFile::Span note = file->metadata_note();
  CodeObjectMetadata metadata;
  if (note.bytes == 0 || note.bytes > kLargestMetadataBytes)
    return failed(LoadStatus::kInvalidImage,
                  "no kernel metadata (NT_AMDGPU_METADATA note) of a sensible size");
  if (!parse_metadata(note.data, note.bytes, &metadata, &error))
    return failed(LoadStatus::kInvalidImage, error);
  if (!metadata.target.empty()) {
    TargetId stated;
    if (!parse_target_id(metadata.target, &stated, &error))
      return failed(LoadStatus::kInvalidImage, error);
    if (!device_accepts(device, stated, &error)) return failed(LoadStatus::kWrongTarget, error);
  }

  object->image_ = Image::load(*file, &error);
  if (!object->image_ ||
      !object->add_kernels(metadata, DebugInfo(debug_sections_of(*file)), device, &error))
    return failed(LoadStatus::kInvalidImage, error);
  for (const Image::Segment &segment : object->image_->segments()) {
    AddressSpace::instance().remember(
        reinterpret_cast<void *>(object->image_->base() + segment.offset), segment.bytes,
        segment.writable, "code object");
  }
  object->remembered_ = true;
  result.object = std::move(object);
  return result;
}

}  // namespace flydsl::emu
