// run --replay: calls that FLYDSL_AOT_VERBOSE recorded, once more, on data made up.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>

#include "tools/call_rows.h"
#include "tools/call_text.h"
#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"
#include "tools/random_data.h"

namespace flydsl::tools {
namespace {

bool begins_with(const std::string &text, const char *prefix) {
  return text.rfind(prefix, 0) == 0;
}

// What lists of lengths hold, which a record does not tell: sequences and groups of equal length.
std::vector<int64_t> numbers_of(const RecordedCall &call, const CallBuffer &buffer) {
  const int64_t count = buffer.tensor->sizes[0];
  std::vector<int64_t> numbers(static_cast<size_t>(std::max<int64_t>(count, 0)));
  const bool keys = buffer.member.back() == 'k';
  const flydsl_aot_tensor *rows = call.tensor(keys ? "k" : "q");
  if (buffer.member == "offsets") {
    const flydsl_aot_tensor &a = *call.tensor("a"), &b = *call.tensor("b"), &d = *call.tensor("d");
    const int64_t shared = a.rank == 3   ? d.sizes[d.rank - 1]
                           : b.rank == 3 ? a.sizes[0]
                                         : a.sizes[1];
    for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = shared * (i + 1) / count;
  } else if (begins_with(buffer.member, "cu_seqlens") && rows) {
    const int64_t total = rows->sizes[rows->rank - 2], batches = std::max<int64_t>(count - 1, 1);
    for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = total * i / batches;
  } else if (begins_with(buffer.member, "seqused") && rows) {
    int64_t length = call.tensor("block_table") && keys ? call.number("max_seqlen_k")
                                                        : rows->sizes[rows->rank - 2];
    if (rows->rank == 3 && count > 0) length /= count;  // packed
    std::fill(numbers.begin(), numbers.end(), length);
  } else if (buffer.member == "block_table") {
    numbers.resize(buffer.bytes / sizeof(int32_t));
    const flydsl_aot_tensor *k = call.tensor("k");
    for (size_t i = 0; k && i < numbers.size(); ++i)
      numbers[i] = k->sizes[0] > 0 ? static_cast<int64_t>(i) % k->sizes[0] : 0;
  }
  return numbers;
}

std::vector<uint8_t> data_of(const RecordedCall &call, const CallBuffer &buffer, uint64_t stream) {
  std::vector<uint8_t> data(buffer.bytes);
  if (!buffer.tensor || data.empty()) return data;  // zero
  const flydsl_aot_dtype dtype = buffer.tensor->dtype;
  if (dtype == FLYDSL_AOT_INT32 || dtype == FLYDSL_AOT_INT64) {
    const std::vector<int64_t> numbers = numbers_of(call, buffer);
    const size_t width = flydsl_aot_dtype_bytes(dtype);
    // Of little-endian numbers the first bytes are the narrower number.
    for (size_t i = 0; i < numbers.size() && (i + 1) * width <= data.size(); ++i)
      std::memcpy(data.data() + i * width, &numbers[i], width);
    return data;
  }
  const std::vector<uint8_t> block = random_block(buffer.member, dtype, stream);
  for (size_t at = 0; at < data.size(); at += block.size())
    std::memcpy(data.data() + at, block.data(), std::min(block.size(), data.size() - at));
  return data;
}

// Memory for what a call reads and writes. Outputs get data, too: a record does not say which they are.
void place_buffers(const LibraryHandle &library, RecordedCall &call,
                   std::deque<DeviceMemory> &memory) {
  uint64_t stream = 0;
  for (CallBuffer &buffer : call.buffers()) {
    if (!buffer.alias.empty()) {
      for (const CallBuffer &before : call.buffers())
        if (before.member == buffer.alias) *buffer.pointer = *before.pointer;
      continue;
    }
    // The allocator's addresses are multiples of 256.
    const uint64_t shift = buffer.alignment % 256;
    auto *data = static_cast<uint8_t *>(
        memory.emplace_back(library, buffer.bytes + shift, buffer.member).data());
    *buffer.pointer = data + shift;
    const std::vector<uint8_t> content = data_of(call, buffer, stream++);
    check(flydsl_aot_device_upload(library.get(), *buffer.pointer, content.data(), content.size()),
          "upload of " + buffer.member);
  }
}

struct Replayed {
  std::string kernel;
  double ms;
};

Replayed replay(const LibraryHandle &library, const std::string &where, RecordedCall &call) {
  std::deque<DeviceMemory> memory;
  place_buffers(library, call, memory);
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  check(call.query(library.get(), &result), where + ": " + call.op());
  if (result.workspace_bytes > 0) {
    call.set_workspace(memory.emplace_back(library, result.workspace_bytes, "the workspace").data(),
                       result.workspace_bytes);
  }
  const auto begin = std::chrono::steady_clock::now();
  check(call.launch(library.get()), where + ": " + call.op());
  check(flydsl_aot_device_synchronize(library.get()), where + ": " + call.op());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return {result.kernel, took.count()};
}

bool names(const std::string &kernels, const std::string &kernel) {
  return ("+" + kernels + "+").find("+" + kernel + "+") != std::string::npos;
}

}  // namespace

void command_replay(const OpenArguments &open, const std::string &file) {
  CallRows calls(file);
  LibraryHandle library;
  library.open(open);
  const flydsl_aot_info info = library.info();
  if (info.device == FLYDSL_AOT_DEVICE_NONE)
    bad_input("--replay needs a device: --device emulator or --device hip");
  std::printf(
      "device     %s\narchive    %s\ndata       made up: random values, sequences and groups of "
      "equal length\n",
      describe_device(info).c_str(), info.archive_path);
  size_t rows = 0, same = 0;
  const auto sum_up = [&] {
    std::printf("replayed   %zu calls, %zu on the recorded kernel\n", rows, same);
  };
  try {
    for (CallRow row; calls.next(&row);) {
      RecordedCall call(row.where, row.op, row.problem);
      const Replayed replayed = replay(library, row.where, call);
      const bool as_recorded =
          replayed.kernel.empty() ? row.kernels.empty() : names(row.kernels, replayed.kernel);
      ++rows;
      same += as_recorded;
      std::printf("line %-5zu %s %s, %.3f ms host time%s\n", row.line, row.op.c_str(),
                  replayed.kernel.empty() ? "(no kernel needed)" : replayed.kernel.c_str(),
                  replayed.ms, as_recorded ? "" : (", recorded: " + row.kernels).c_str());
    }
  } catch (const ToolError &) {
    sum_up();  // of the rows before
    throw;
  }
  sum_up();
}

}  // namespace flydsl::tools
