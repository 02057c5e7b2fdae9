// Status: how every internal function reports failure, and the thread's last message at the C
// boundary.
//
// Internal functions return a Status by value. Only the outermost C function publishes it
// (publish()), so a failure that was handled on the way never shows up in flydsl_aot_last_error().
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "flydsl_aot/status.h"

namespace flydsl {

class [[nodiscard]] Status {
 public:
  Status() = default;  // success; allocates nothing
  Status(flydsl_aot_status code, std::string message)
      : failure_(new Failure{code, std::move(message)}) {}
  Status(const Status &other)
      : failure_(other.failure_ ? new Failure(*other.failure_) : nullptr) {}
  Status(Status &&) = default;
  Status &operator=(Status other) {
    failure_ = std::move(other.failure_);
    return *this;
  }

  bool ok() const { return !failure_; }
  flydsl_aot_status code() const { return failure_ ? failure_->code : FLYDSL_AOT_OK; }
  std::string message() const { return failure_ ? failure_->message : std::string(); }

 private:
  struct Failure {
    flydsl_aot_status code;
    std::string message;
  };
  // Success, which every step of a call returns, is a null pointer.
  std::unique_ptr<const Failure> failure_;
};

// What the C functions of the same names return.
const char *status_name(flydsl_aot_status code) noexcept;
const char *status_sentence(flydsl_aot_status code) noexcept;
const char *last_error() noexcept;

// A Status whose message is formatted as by printf.
__attribute__((format(printf, 2, 3))) Status error(flydsl_aot_status code, const char *format, ...);
// The same text without a status, for reasons and lists.
__attribute__((format(printf, 1, 2))) std::string text(const char *format, ...);

// What errno's value means.
std::string errno_text(int number);

// Makes a failure the thread's last error, as "<function>: <message>", and logs it. Returns `code`.
flydsl_aot_status publish(const char *function, flydsl_aot_status code,
                          const char *message) noexcept;

// The same for the exception in flight.
flydsl_aot_status publish_exception(const char *function) noexcept;

// Runs the body of the C function of that name: no exception leaves it. Body returns Status.
template <typename Body>
flydsl_aot_status guarded(const char *function, Body &&body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? FLYDSL_AOT_OK : publish(function, status.code(), status.message().c_str());
  } catch (...) {
    return publish_exception(function);
  }
}

// Copies a NUL-terminated string, shortened at a UTF-8 character boundary when it does not fit.
void copy_utf8(char *destination, size_t capacity, const char *source) noexcept;

}  // namespace flydsl

#define FLYDSL_RETURN_IF_ERROR(expression)                                    \
  do {                                                                        \
    if (::flydsl::Status flydsl_status_ = (expression); !flydsl_status_.ok()) \
      return flydsl_status_;                                                  \
  } while (0)
