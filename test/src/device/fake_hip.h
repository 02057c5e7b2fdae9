// A HIP runtime for tests of the runtime's host side: counts, records and fails on request, and
// computes nothing.
//
// Built once per HIP major version (fake_hip5 ... fake_hip8: only the symbols that version has),
// once with the emulator's marks (fake_hip_emulator), and once without the symbol
// hipModuleLoadData (fake_hip_incomplete). A test opens the same library and gets at its state.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

namespace flydsl::test {

// Streams are numbers: device * 16 + 1024, plus 1 if they are "captured" into a graph, until the test says that captures have ended.
inline void *fake_stream(int device, bool capturing = false) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(1024 + device * 16 + (capturing ? 1 : 0)));
}

struct FakeHip {
  // Set by the test.
  int runtime_version;
  int device_count;
  char target_id[8][64];
  int compute_units;
  std::atomic<bool> captures_ended;
  int load_delay_us;  // widens the window for races between first uses
  // HIP error codes to fail the call with; 0: it works.
  int version_error, count_error, properties_error, get_device_error, set_device_error,
      stream_device_error, capture_error, load_error, function_error, launch_error, malloc_error,
      memcpy_error, synchronize_error;

  // Recorded.
  std::atomic<int> loads, unloads, launches, live_modules, allocations;
  std::atomic<int> strict_unloads;  // in a capture mode of the thread's other than the relaxed one
  std::atomic<int> loads_on_device[8];
  struct Launch {
    char symbol[128];
    int device;
    void *stream;
    unsigned grid[3], block[3], lds_bytes;
    unsigned kernarg_bytes;
    unsigned char kernarg[1024];
  } last_launch;
  Launch recent[8];              // launch n, from 0, at n % 8: of calls that make several
  unsigned char last_image[64];  // first bytes of the image loaded last

  // The calling thread's: sticky error without clearing it (hipPeekAtLastError), current device.
  int (*peek_at_last_error)();
  int (*current_device)();
  int (*capture_mode)();
  void (*make_current)(int device);
  void (*reset)();  // counters, failures and thread state; version and devices to their defaults
};

inline FakeHip *open_fake_hip(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  auto *get = reinterpret_cast<FakeHip *(*)()>(dlsym(library, "fake_hip"));
  return get ? get() : nullptr;
}

}  // namespace flydsl::test
