// Names of statuses and the thread's last error.
#include "flydsl_aot/status.h"

#include "src/status/status.h"

extern "C" {

const char *flydsl_aot_status_name(flydsl_aot_status status) {
  return flydsl::status_name(status);
}

const char *flydsl_aot_status_string(flydsl_aot_status status) {
  return flydsl::status_sentence(status);
}

const char *flydsl_aot_last_error(void) {
  return flydsl::last_error();
}

flydsl_aot_status flydsl_aot_set_last_error(flydsl_aot_status status, const char *function,
                                            const char *message) {
  return flydsl::publish(function ? function : "", status, message ? message : "");
}

}  // extern "C"
