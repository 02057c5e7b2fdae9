#include "tools/input_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/exit_status.h"
#include "tools/random_data.h"

namespace flydsl::tools {
namespace {

constexpr uint64_t kMostRandomBytes = uint64_t{4} << 30;

template <typename Element>
std::vector<uint8_t> bytes_of_elements(const std::vector<Element> &elements) {
  std::vector<uint8_t> bytes(elements.size() * sizeof(Element));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> bytes_of_numbers(const BoundTensor &input,
                                      const std::vector<int64_t> &numbers) {
  if (input.tensor->dtype == FLYDSL_AOT_INT64) return bytes_of_elements(numbers);
  return bytes_of_elements(std::vector<int32_t>(numbers.begin(), numbers.end()));
}

// The numbers of `blocks` blocks in an order without a pattern; sequences share blocks if there are too few.
std::vector<uint8_t> shuffled_blocks(size_t count, int64_t blocks) {
  std::vector<int32_t> numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = blocks > 0 ? static_cast<int32_t>(static_cast<int64_t>(i) % blocks) : 0;
  uint64_t state = kRandomSeed;
  for (size_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[random_bits(state) % i]);
  return bytes_of_elements(numbers);
}

std::vector<uint8_t> slopes(size_t count, size_t heads) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(
        std::exp2(-8.0 * static_cast<double>(i % heads + 1) / static_cast<double>(heads)));
  return bytes_of_elements(values);
}

std::vector<uint8_t> factors(size_t count) {
  std::vector<float> values(count);
  uint64_t state = kRandomSeed;
  for (float &value : values)
    value = std::exp2(static_cast<float>(random_bits(state) >> 40) * 0x1p-23f - 1);
  return bytes_of_elements(values);
}

const TensorSpec &spec_of(const BoundProblem &bound, const std::string &name) {
  for (const TensorSpec &spec : bound.op->inputs)
    if (name == spec.name) return spec;
  throw ToolError(kExitFailure, name + " is no input of " + bound.op->name);
}

const BoundTensor &input_of(const BoundProblem &bound, const std::string &name) {
  for (const BoundTensor &input : bound.problem->inputs)
    if (input.name == name) return input;
  throw ToolError(kExitFailure, name + " is not bound");
}

bool is_random(const BoundProblem &bound, const BoundTensor &input) {
  const Content content = spec_of(bound, input.name).content;
  return !bound.files.count(input.name) &&
         (content == Content::kNormal || content == Content::kBooleans ||
          content == Content::kScales);
}

// Of an input that is small, or from a file.
std::vector<uint8_t> whole_input(const BoundProblem &bound, const BoundTensor &input) {
  if (const auto file = bound.files.find(input.name); file != bound.files.end())
    return file->second.bytes;
  if (const auto list = bound.numbers.find(input.name); list != bound.numbers.end())
    return bytes_of_numbers(input, list->second);
  const TensorSpec &spec = spec_of(bound, input.name);
  const size_t count = bytes_of(input) / flydsl_aot_dtype_bytes(input.tensor->dtype);
  switch (spec.content) {
    case Content::kBlocks:
      return shuffled_blocks(count, input_of(bound, "k").tensor->sizes[0]);
    case Content::kSlopes:
      return slopes(count, std::max<size_t>(1, static_cast<size_t>(input.file_shape.back())));
    default:
      return factors(count);
  }
}

}  // namespace

std::string upload_inputs(const LibraryHandle &library, const BoundProblem &bound) {
  const auto upload = [&](const BoundTensor &input, uint64_t at, const std::vector<uint8_t> &data,
                          uint64_t bytes) {
    check(flydsl_aot_device_upload(library.get(), static_cast<uint8_t *>(input.tensor->data) + at,
                                   data.data(), bytes),
          "upload of " + input.name);
  };
  uint64_t random_bytes = 0;
  for (const BoundTensor &input : bound.problem->inputs)
    if (is_random(bound, input)) random_bytes += bytes_of(input);
  const double share = random_bytes <= kMostRandomBytes ? 1
                                                        : static_cast<double>(kMostRandomBytes) /
                                                              static_cast<double>(random_bytes);
  uint64_t stream = 0;
  for (const BoundTensor &input : bound.problem->inputs) {
    const uint64_t bytes = bytes_of(input);
    if (!is_random(bound, input)) {
      upload(input, 0, whole_input(bound, input), bytes);
      continue;
    }
    const std::vector<uint8_t> block = random_block(input.name, input.tensor->dtype, stream++);
    const auto filled = static_cast<uint64_t>(static_cast<double>(bytes) * share);
    for (uint64_t done = 0; done < filled; done += block.size())
      upload(input, done, block, std::min<uint64_t>(block.size(), filled - done));
  }
  if (random_bytes == 0) return "from files";
  std::string text = "normal, seed " + std::to_string(kRandomSeed) + ", repeated every " +
                     std::to_string(kRandomBlockElements) + " elements";
  if (share < 1)
    text += "; the first " + std::to_string(static_cast<int>(share * 100)) +
            " % of each input, the rest is zero";
  if (!bound.files.empty()) text += "; those given with --in from their files";
  return text;
}

}  // namespace flydsl::tools
