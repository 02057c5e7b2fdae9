#include "emulator/hip/kernel_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "emulator/hip/api_call.h"
#include "emulator/memory/address_space.h"

namespace flydsl::emu::hip {
namespace {

// HSA hands out segments in whole 64-byte lines, and compilers widen scalar loads into the padding
// (three words are read as four).
constexpr size_t kSegmentUnitBytes = 64;
// A line of the caches: the timing model sees equal launches touch equal lines.
constexpr size_t kSegmentAlignBytes = 128;

struct HiddenValue {
  const char *value_kind;
  uint64_t value;
};

}  // namespace

void KernelArguments::Free::operator()(void *memory) const {
  AddressSpace::instance().forget(memory);
  std::free(memory);
}

KernelArguments::KernelArguments(const KernelMetadata &kernel) : kernel_(kernel) {
  for (const KernelArgument &argument : kernel.arguments) {
    if (!argument.hidden())
      explicit_bytes_ = std::max(explicit_bytes_, argument.offset_bytes + argument.size_bytes);
  }
  segment_bytes_ = (std::max<size_t>(kernel.kernarg_bytes, 1) + kSegmentUnitBytes - 1) /
                   kSegmentUnitBytes * kSegmentUnitBytes;
  memory_.reset(static_cast<char *>(std::aligned_alloc(
      kSegmentAlignBytes,
      (segment_bytes_ + kSegmentAlignBytes - 1) / kSegmentAlignBytes * kSegmentAlignBytes)));
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, segment_bytes_);
  AddressSpace::instance().remember(memory_.get(), segment_bytes_, false, "kernel arguments");
}

KernelArguments::~KernelArguments() = default;

hipError_t KernelArguments::set_explicit(void *const *parameters, void *const *extra) {
  if (parameters != nullptr && extra != nullptr)
    return fail(hipErrorInvalidValue, "%s: kernelParams and extra are both given",
                kernel_.name.c_str());
  if (extra != nullptr) return set_from_buffer(extra);
  if (kernel_.arguments.empty() && kernel_.kernarg_bytes != 0)
    return fail(hipErrorInvalidValue,
                "%s: its metadata does not list its %u bytes of arguments, pass them by extra",
                kernel_.name.c_str(), kernel_.kernarg_bytes);
  if (explicit_bytes_ == 0) return hipSuccess;
  if (parameters == nullptr)
    return fail(hipErrorInvalidValue, "%s takes %u bytes of arguments, none are given",
                kernel_.name.c_str(), explicit_bytes_);
  return set_from_parameters(parameters);
}

hipError_t KernelArguments::set_from_parameters(void *const *parameters) {
  size_t index = 0;
  for (const KernelArgument &argument : kernel_.arguments) {
    if (argument.hidden()) continue;
    const void *value = parameters[index];
    if (value == nullptr)
      return fail(hipErrorInvalidValue, "%s: kernelParams[%zu] is null", kernel_.name.c_str(),
                  index);
    std::memcpy(memory_.get() + argument.offset_bytes, value, argument.size_bytes);
    ++index;
  }
  return hipSuccess;
}

hipError_t KernelArguments::set_from_buffer(void *const *extra) {
  const void *buffer = nullptr;
  const size_t *bytes = nullptr;
  constexpr int kMostEntries = 16;  // a list that does not end is refused, not followed
  for (int i = 0;; i += 2) {
    const auto marker = reinterpret_cast<uintptr_t>(extra[i]);
    if (marker == HIP_LAUNCH_PARAM_END_VALUE) break;
    if (marker == HIP_LAUNCH_PARAM_BUFFER_POINTER_VALUE) {
      buffer = extra[i + 1];
    } else if (marker == HIP_LAUNCH_PARAM_BUFFER_SIZE_VALUE) {
      bytes = static_cast<const size_t *>(extra[i + 1]);
    } else {
      return fail(hipErrorInvalidValue, "%s: extra[%d] is no HIP_LAUNCH_PARAM marker",
                  kernel_.name.c_str(), i);
    }
    if (i >= kMostEntries)
      return fail(hipErrorInvalidValue, "%s: extra has no HIP_LAUNCH_PARAM_END",
                  kernel_.name.c_str());
  }
  if (explicit_bytes_ == 0 && (buffer == nullptr || bytes == nullptr)) return hipSuccess;
  if (buffer == nullptr || bytes == nullptr)
    return fail(hipErrorInvalidValue, "%s: extra lacks the buffer or its size",
                kernel_.name.c_str());
  if (*bytes < explicit_bytes_)
    return fail(hipErrorInvalidValue, "%s takes %u bytes of arguments, the buffer has %zu",
                kernel_.name.c_str(), explicit_bytes_, *bytes);
  std::memcpy(memory_.get(), buffer, std::min<size_t>(*bytes, kernel_.kernarg_bytes));
  return hipSuccess;
}

void KernelArguments::set_hidden(const Dispatch &dispatch) {
  const uint32_t *grid = dispatch.grid;
  const uint32_t *block = dispatch.block;
  const uint64_t dimensions = grid[2] * uint64_t{block[2]} > 1   ? 3
                              : grid[1] * uint64_t{block[1]} > 1 ? 2
                                                                 : 1;
  // A grid is whole work-groups here, so all remainders are 0; so are the global offsets, which HIP
  // does not have.
  const HiddenValue values[] = {
      {"hidden_block_count_x", grid[0]}, {"hidden_block_count_y", grid[1]},
      {"hidden_block_count_z", grid[2]}, {"hidden_group_size_x", block[0]},
      {"hidden_group_size_y", block[1]}, {"hidden_group_size_z", block[2]},
      {"hidden_grid_dims", dimensions},  {"hidden_dynamic_lds_size", dispatch.dynamic_lds_bytes},
  };
  for (const KernelArgument &argument : kernel_.arguments) {
    if (!argument.hidden()) continue;
    uint64_t value = 0;
    for (const HiddenValue &candidate : values) {
      if (argument.value_kind == candidate.value_kind) value = candidate.value;
    }
    char *const place = memory_.get() + argument.offset_bytes;
    std::memset(place, 0, argument.size_bytes);
    std::memcpy(place, &value, std::min<size_t>(argument.size_bytes, sizeof value));
  }
}

}  // namespace flydsl::emu::hip
