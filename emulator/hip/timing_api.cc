// flydsl_emu_set_timing, flydsl_emu_recent_timing and what goes with them: see flydsl_emu.h.
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

FLYDSL_EMU_EXPORT uint64_t flydsl_emu_launch_count(void) {
  return launch_count();
}

FLYDSL_EMU_EXPORT const char *flydsl_emu_recent_timing(uint64_t back, int detail) {
  const char *text = "";
  (void)api_call([&] {
    if (launch_count() == 0) return fail(hipErrorInvalidValue, "this thread has launched nothing");
    const auto launch = recent_launch(back);
    if (!launch)
      return fail(hipErrorInvalidValue,
                  "%llu launches before the last one: this thread made %llu, of which at most %llu "
                  "are kept",
                  static_cast<unsigned long long>(back),
                  static_cast<unsigned long long>(launch_count()),
                  static_cast<unsigned long long>(kRememberedLaunches));
    if (!launch->timing)
      return fail(hipErrorInvalidValue, "the launch was not modelled: %s",
                  launch->result.ok ? "flydsl_emu_set_timing and FLYDSL_EMU_TIMING ask for it"
                                    : launch->result.fault.c_str());
    // The launch's record holds both texts.
    text = (detail ? launch->timing->detail() : launch->timing->summary()).c_str();
    return hipSuccess;
  });
  return text;
}

FLYDSL_EMU_EXPORT const char *flydsl_emu_last_timing(int detail) {
  return flydsl_emu_recent_timing(0, detail);
}
