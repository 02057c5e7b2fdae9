// flydsl_emu_*: see flydsl_emu.h.
#include <cstdio>
#include <cstring>
#include <mutex>

#include "emulator/hip/api_call.h"
#include "emulator/hip/flydsl_emu.h"
#include "emulator/hip/launch_report.h"

namespace flydsl::emu::hip {
namespace {

// Plain data, as in error_api.cc.
thread_local flydsl_emu_dispatch t_last_dispatch;
thread_local bool t_has_dispatch = false;
thread_local char t_fault_text[4096];

struct LastFault {
  std::mutex mutex;
  std::string text;
};

LastFault &last_fault() {
  static auto *const fault = new LastFault;  // never destroyed, as with device_table()
  return *fault;
}

}  // namespace

void report_dispatch(const DispatchResult &result) {
  t_last_dispatch = {sizeof t_last_dispatch, result.wave_instructions, result.mfma_flops,
                     result.host_seconds};
  t_has_dispatch = true;
  if (result.ok) return;
  std::string block = "flydsl_emu: kernel fault\nflydsl_emu:   ";
  for (const char c : result.fault) {
    block += c;
    if (c == '\n') block += "flydsl_emu:   ";
  }
  block += '\n';
  std::fwrite(block.data(), 1, block.size(), stderr);
  std::fflush(stderr);
  LastFault &fault = last_fault();
  std::lock_guard<std::mutex> lock(fault.mutex);
  fault.text = result.fault;
}

}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT const char *flydsl_emu_version(void) {
  return FLYDSL_EMU_VERSION_TEXT;
}

FLYDSL_EMU_EXPORT const char *flydsl_emu_last_error(void) {
  return last_explanation();
}

FLYDSL_EMU_EXPORT const char *flydsl_emu_last_fault(void) {
  LastFault &fault = last_fault();
  std::lock_guard<std::mutex> lock(fault.mutex);
  std::snprintf(t_fault_text, sizeof t_fault_text, "%s", fault.text.c_str());
  return t_fault_text;
}

FLYDSL_EMU_EXPORT int flydsl_emu_last_dispatch(flydsl_emu_dispatch *result) {
  if (result == nullptr || result->struct_size < sizeof result->struct_size || !t_has_dispatch)
    return 1;
  const uint32_t bytes =
      result->struct_size < sizeof *result ? result->struct_size : sizeof *result;
  const uint32_t struct_size = result->struct_size;
  std::memcpy(result, &t_last_dispatch, bytes);
  result->struct_size = struct_size;
  return 0;
}
