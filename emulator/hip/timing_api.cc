// flydsl_emu_set_timing and flydsl_emu_last_timing: see flydsl_emu.h.
#include "emulator/hip/api_call.h"
#include "emulator/hip/flydsl_emu.h"
#include "emulator/hip/launch_report.h"
#include "emulator/hip/launch_timing.h"

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT int flydsl_emu_set_timing(const char *mode) {
  if (set_timing_mode(mode)) return 0;
  (void)fail(hipErrorInvalidValue, "the timing mode is '%s': off, sample and full are allowed",
             mode);
  return 1;
}

FLYDSL_EMU_EXPORT const char *flydsl_emu_last_timing(int detail) {
  const char *text = "";
  (void)api_call([&] {
    const auto launch = last_launch();
    if (!launch) return fail(hipErrorInvalidValue, "this thread has launched nothing");
    if (!launch->timing)
      return fail(hipErrorInvalidValue, "the last launch was not modelled: %s",
                  launch->result.ok ? "flydsl_emu_set_timing and FLYDSL_EMU_TIMING ask for it"
                                    : launch->result.fault.c_str());
    // The launch's record holds both texts.
    text = (detail ? launch->timing->detail() : launch->timing->summary()).c_str();
    return hipSuccess;
  });
  return text;
}
