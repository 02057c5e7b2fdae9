// libFuzzer's entry: any bytes, loaded as hipModuleLoad would, end in an object or a reason, and
// nothing of them is left behind. run_fuzzer.sh runs it; replay.cc runs the corpus in CI.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "emulator/engine/program_impl.h"
#include "emulator/loader/code_object.h"
#include "emulator/loader/compressed_bundle.h"
#include "emulator/loader/elf_file.h"
#include "emulator/loader/offload_bundle.h"
#include "emulator/memory/address_space.h"

namespace {

void require(bool condition, const char *what) {
  if (condition) return;
  std::fprintf(stderr, "loader_fuzz: %s\n", what);
  std::abort();
}

flydsl::emu::TargetId device() {
  flydsl::emu::TargetId id;
  std::string error;
  require(flydsl::emu::parse_target_id("gfx950:sramecc+:xnack-", &id, &error), "device id");
  return id;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  using namespace flydsl::emu;
  static const TargetId kDevice = device();
  {
    const LoadResult result = load_code_object(data, bytes, kDevice);
    const bool ok = result.status == LoadStatus::kOk;
    require(ok == (result.object != nullptr), "an object exactly if the status is ok");
    require(ok == result.error.empty(), "a reason exactly if the status is not ok");
    if (ok) {
      for (const auto &[name, loaded] : result.object->kernels()) {
        require(loaded.kernel.name == name, "kernels go by their names");
        uint64_t end = 0;
        for (const KernelArgument &argument : loaded.metadata.arguments)
          end = std::max(end, uint64_t{argument.offset_bytes} + argument.size_bytes);
        require(end <= loaded.metadata.kernarg_bytes, "arguments lie in the segment");
        // Debug information, if any, is read at the first question.
        const Program &program = *loaded.kernel.program;
        for (const uint32_t offset : program.offsets)
          for (const SourceFrame &frame : source_frames(program, offset))
            require(frame.line != 0, "a frame has a line");
      }
    }
  }
  require(AddressSpace::instance().snapshot()->nearest(0) == nullptr, "regions are left behind");
  // As hipModuleLoadData, which has no size, finds the end.
  require(elf_bytes_by_header(data, bytes) <= SIZE_MAX / 2, "absurd size");
  if (looks_like_offload_bundle(data, bytes))
    require(offload_bundle_bytes(data, bytes) <= bytes, "a bundle ends in its bytes");
  if (looks_like_compressed_bundle(data, bytes))
    require(compressed_bundle_bytes(data, bytes) <= bytes, "a bundle ends in its bytes");
  return 0;
}
