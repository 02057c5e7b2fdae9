// More of libflydsl_emu.so by name: FLYDSL_HIP(hipFoo)(arguments) with a signature given once.
#pragma once

#include <atomic>
#include <cstdlib>
#include <thread>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {

template <typename Signature>
Signature *find_function(const char *name) {
  void *const symbol = dlsym(hip().library, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "%s lacks %s\n", library_path().c_str(), name);
    std::abort();
  }
  Signature *function = nullptr;
  std::memcpy(&function, &symbol, sizeof symbol);
  return function;
}

// Declares a function of the library under its own name.
#define FLYDSL_HIP_FUNCTION(name, ...)                                           \
  template <typename... Arguments>                                               \
  hipError_t name(Arguments... arguments) {                                      \
    static auto *const function = find_function<hipError_t(__VA_ARGS__)>(#name); \
    return function(arguments...);                                               \
  }

#define EXPECT_CALL(code, call) EXPECT_EQ(code, call) << hip().flydsl_emu_last_error()
#define ASSERT_CALL(code, call) ASSERT_EQ(code, call) << hip().flydsl_emu_last_error()

// A gate that a host function waits at, to hold a stream where a test wants it.
class Gate {
 public:
  void open() { opened_ = true; }
  bool reached() const { return reached_; }
  static void wait(void *gate) {
    auto *const self = static_cast<Gate *>(gate);
    self->reached_ = true;
    while (!self->opened_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> opened_{false}, reached_{false};
};

}  // namespace flydsl::emu::test
