// A hipRTC for tests: what it "compiles" is a text that names what went in. Counts, waits and fails on request.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace flydsl::test {

// The functions whose result the product looks at.
enum HiprtcCall { kHiprtcVersion, kHiprtcCreateProgram, kHiprtcCompileProgram, kHiprtcGetCodeSize, kHiprtcGetCode, kHiprtcCalls };
constexpr const char *kHiprtcNames[] = {"hiprtcVersion", "hiprtcCreateProgram", "hiprtcCompileProgram",
                                        "hiprtcGetCodeSize", "hiprtcGetCode"};

struct FakeHiprtc {
  // Set by the test.
  char compiler[64];                            // the version that its compiler says
  int compile_delay_us;                         // widens the window for races
  int create_error, compile_error, code_error;  // hipRTC's result codes; 0: it works
  int compiles_before_error;                    // so many more work before compile_error
  // The nth call of `failing` from then on returns `code`; 0: none does.
  int failing, nth, code;

  // Recorded.
  std::atomic<int> compilations;  // but for those that ask for the version
  std::atomic<int> live_programs;
  std::atomic<int> calls[kHiprtcCalls];
  char options[512];         // of the last one, with spaces between
  std::atomic<int> headers;  // of the last one

  void (*reset)();
};

inline FakeHiprtc *open_fake_hiprtc(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  auto *get = reinterpret_cast<FakeHiprtc *(*)()>(dlsym(library, "fake_hiprtc"));
  return get ? get() : nullptr;
}

}  // namespace flydsl::test
