#include "test/support/library.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace flydsl::test {

flydsl_aot_handle *open_emulator() {
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_EMULATOR;
  flydsl_aot_handle *handle = nullptr;
  const flydsl_aot_status status = flydsl_aot_open(&options, &handle);
  if (status != FLYDSL_AOT_OK) {
    std::fprintf(stderr, "cannot open the library on the emulator: %s: %s\n",
                 flydsl_aot_status_name(status), flydsl_aot_last_error());
    std::exit(1);
  }
  return handle;
}

flydsl_aot_handle *emulator() {
  static const std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)> handle(
      open_emulator(), flydsl_aot_close);
  return handle.get();
}

}  // namespace flydsl::test
