// Launches assembled code as a kernel whose argument is a pointer to an array of words.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "emulator/engine/dispatch.h"
#include "emulator/engine/program.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {

// Device memory begins at a page; where malloc would put it decides how many cache lines are touched.
template <typename T>
struct PageAllocator {
  using value_type = T;
  static constexpr std::align_val_t kPage{4096};

  PageAllocator() = default;
  template <typename U>
  explicit PageAllocator(const PageAllocator<U> &) {}
  T *allocate(size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), kPage)); }
  void deallocate(T *memory, size_t) { ::operator delete(memory, kPage); }
  bool operator==(const PageAllocator &) const = default;
};

// A kernel whose only argument is a pointer to `words` words: s[0:1] kernel arguments, s2-s4
// work-group ids.
class Launch : public testing::Test {
 protected:
  void build(const std::string &assembly, size_t words = 4096) {
    code_ = assemble(assembly + "\ns_endpgm");
    out_.assign(words, 0);
    kernarg_ = reinterpret_cast<uint64_t>(out_.data());
    kernel_.name.assign(1, 'k');
    kernel_.program = decode_program("gfx950:sramecc+:xnack-", code_.data(), code_.size());
    kernel_.entry_address = reinterpret_cast<uint64_t>(code_.data());
    kernel_.compute_pgm_rsrc1 = 0xf0u << 12 | 1u << 21 | 1u << 23;
    kernel_.compute_pgm_rsrc2 = 2u << 1 | 7u << 7;
    kernel_.kernel_code_properties = 1u << 3;
    kernel_.kernarg_bytes = 8;
    dispatch_.kernarg = &kernarg_;
    dispatch_.block[0] = 64;
  }
  DispatchResult run(unsigned threads = 2) {
    std::vector<Region> regions = {region(&kernarg_, 8, false, "kernel arguments"),
                                   region(out_.data(), out_.size() * 4, true, "hipMalloc")};
    std::sort(regions.begin(), regions.end(),
              [](const Region &x, const Region &y) { return x.begin < y.begin; });
    DispatchOptions options = options_;
    options.threads = threads;
    return run_dispatch(kernel_, dispatch_, RegionSnapshot(regions), options);
  }
  static Region region(const void *p, size_t bytes, bool writable, const char *what) {
    return {reinterpret_cast<uint64_t>(p), reinterpret_cast<uint64_t>(p) + bytes, writable, what};
  }

  std::vector<uint8_t> code_;
  std::vector<uint32_t, PageAllocator<uint32_t>> out_;
  uint64_t kernarg_ = 0;
  Kernel kernel_;
  Dispatch dispatch_;
  DispatchOptions options_;
};

}  // namespace flydsl::emu::test
